package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	sqlite3 "github.com/mattn/go-sqlite3"

	"github.com/exocomp/exocomp/orchestrator"
)

// explain turns what SQLite and the file system say into a sentence with
// something to do. Domain errors pass as they are; a context that ended is
// reported as such, whatever it made SQLite say.
func (l *Ledger) explain(ctx context.Context, op string, err error) error {
	var domain *orchestrator.Error
	if errors.As(err, &domain) {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", op, ctx.Err())
	}
	said := machine(l.path, err)
	if said == nil {
		return fmt.Errorf("%s %q: %w", op, l.path, err)
	}
	said.Op, said.Err = op, err
	return said
}

// machine is the table of machine mistakes; nil where it knows none.
func machine(path string, err error) *orchestrator.Error {
	internal := func(format string, args ...any) *orchestrator.Error {
		return orchestrator.Errorf(orchestrator.CodeInternal, format, args...)
	}
	var lite sqlite3.Error
	code := sqlite3.ErrNo(0)
	if errors.As(err, &lite) {
		code = lite.Code
	}
	switch {
	case isFull(err):
		return internal("no space is left for the ledger %s", path).
			WithHint("free some on its file system (exocomp doctor names what running jobs take there), then try again; nothing that was recorded is lost")
	case code == sqlite3.ErrReadonly || errors.Is(err, syscall.EROFS) || lite.SystemErrno == syscall.EROFS:
		return internal("the ledger %s cannot be written: it, or its file system, is read-only", path).
			WithHint("mount the file system read-write, or give exocomp another data directory")
	case errors.Is(err, fs.ErrPermission) || code == sqlite3.ErrPerm || lite.SystemErrno == syscall.EACCES:
		return internal("this user may not open the ledger %s", path).
			WithHint("run as the user who owns it, or give exocomp another data directory")
	case code == sqlite3.ErrNotADB:
		return orchestrator.Errorf(orchestrator.CodeRefused, "%s is not a ledger", path).
			WithHint("move that file away, or give exocomp another data directory")
	case code == sqlite3.ErrCorrupt:
		return damaged(path, err)
	case code == sqlite3.ErrIoErr || errors.Is(err, syscall.EIO):
		return internal("the file system failed under the ledger %s: %v", path, err).
			WithHint("look at the disk (dmesg), then start exocomp again; nothing that was recorded is lost")
	case errors.Is(err, fs.ErrNotExist) || code == sqlite3.ErrCantOpen:
		return orchestrator.Errorf(orchestrator.CodeNotFound, "the ledger %s cannot be opened: %v", path, err).
			WithHint("make its directory, or correct the path")
	case code == sqlite3.ErrBusy || code == sqlite3.ErrLocked:
		return orchestrator.Errorf(orchestrator.CodeUnavailable, "another program has the ledger %s locked", path).
			WithHint("close it there: only exocomp opens a live ledger")
	case code == sqlite3.ErrConstraint || code == sqlite3.ErrTooBig:
		// What was to be recorded breaks a rule of the schema; trying again
		// cannot help, which CodeInvalid says.
		return orchestrator.Errorf(orchestrator.CodeInvalid, "the ledger refuses the record: %v", err)
	default:
		return nil
	}
}

// isFull reports whether an error says that the file system has no room.
func isFull(err error) bool {
	var lite sqlite3.Error
	if errors.As(err, &lite) && (lite.Code == sqlite3.ErrFull || lite.SystemErrno == syscall.ENOSPC || lite.SystemErrno == syscall.EDQUOT) {
		return true
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// damaged says that the file's content is broken.
func damaged(path string, err error) *orchestrator.Error {
	e := orchestrator.Errorf(orchestrator.CodeInternal, "the ledger %s is damaged: %v", path, err).
		WithHint("stop exocomp, keep the file aside, and put the newest good copy of it in its place")
	e.Err = err
	return e
}
