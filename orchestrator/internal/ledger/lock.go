package ledger

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

// lock is the flock(2) on `<ledger>.lock` that one process holds as long as it
// has the ledger open. The kernel lets go of it however the process ends; the
// file stays, since removing it would let two processes lock two files.
type lock struct{ file *os.File }

// acquire takes the lock, shared among readers where readOnly is set. The file
// tells the holder's pid.
func acquire(ledger string, readOnly bool) (*lock, error) {
	flags, how := os.O_RDWR|os.O_CREATE, syscall.LOCK_EX
	if readOnly {
		flags, how = os.O_RDONLY, syscall.LOCK_SH
	}
	f, err := os.OpenFile(ledger+".lock", flags, durable.PrivateFile)
	if readOnly && errors.Is(err, fs.ErrNotExist) {
		return nil, nil // nobody ever had it open here
	}
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); err != nil {
		held := inUse(ledger, f)
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, held
		}
		return nil, fmt.Errorf("lock %s.lock: %w", ledger, err)
	}
	if !readOnly {
		if err := writePID(f); err != nil {
			_ = f.Close()
			return nil, err
		}
	}
	return &lock{file: f}, nil
}

// release lets go of the lock. It may be repeated.
func (l *lock) release() error {
	if err := l.file.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
		return err
	}
	return nil
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// inUse says who has the ledger, as far as the lock file knows.
func inUse(ledger string, f *os.File) error {
	holder := "another process"
	if b, err := io.ReadAll(io.LimitReader(f, 32)); err == nil {
		if pid, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
			holder = fmt.Sprintf("another process (pid %d)", pid)
		}
	}
	return orchestrator.Errorf(orchestrator.CodeConflict, "the ledger %s is in use by %s", ledger, holder).
		WithHint("stop that daemon first, or give this one a data directory of its own")
}
