package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/exocomp/exocomp/orchestrator"
)

// writableByOthers are the mode bits of a directory in which another user can
// replace files.
const writableByOthers = 0o022

// CheckDirectory refuses a data or runtime directory that another user owns or
// may write: whoever can, can take the place of the ledger, the keys and the
// sockets in it. One that is not there yet is fine; only the directory itself
// counts, not those that it lies in.
func CheckDirectory(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return orchestrator.Errorf(orchestrator.CodeFailed, "look at directory: %w", err)
	}
	refuse := func(format string, args ...any) *orchestrator.Error {
		return orchestrator.Errorf(orchestrator.CodeRefused, "the directory %s %s", path, fmt.Sprintf(format, args...))
	}
	if !info.IsDir() {
		return refuse("is a file").WithHint("move it away, or set another directory in exocomp.hcl")
	}
	owner := int(info.Sys().(*syscall.Stat_t).Uid)
	if uid := os.Geteuid(); owner != uid {
		return refuse("belongs to uid %d, not to uid %d that the daemon runs as", owner, uid).
			WithHint("chown it, run the daemon as its owner, or set another directory in exocomp.hcl")
	}
	if mode := info.Mode().Perm(); mode&writableByOthers != 0 {
		return refuse("may be written by other users (mode %04o)", mode).WithHint("chmod go-w %s", path)
	}
	return nil
}

// identityFile is what everything in the ledger is sealed to.
func (c Config) identityFile() string { return filepath.Join(c.DataDir, "identity.txt") }

// refuseLostLedger refuses a data directory whose ledger is gone: a daemon that
// began a new one would have no pins, so that first use applied again, and no
// history, and would take back every inventory. The identity is made after the
// ledger, so where it is, there was one.
func (c Config) refuseLostLedger() error {
	if _, err := os.Lstat(c.identityFile()); errors.Is(err, fs.ErrNotExist) {
		return nil // a new installation
	}
	info, err := os.Stat(c.Ledger())
	if err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() > 0 {
		return nil // what else may be wrong with it, who opens it says
	}
	what := "is missing"
	if err == nil {
		what = "is empty"
	}
	return orchestrator.Errorf(orchestrator.CodeRefused, "the ledger %s %s, and the data directory is not a new one", c.Ledger(), what).
		WithHint("restore the ledger from its backup; to begin anew, with new host keys and a new fleet key, set another data_dir, or move %s away", c.DataDir)
}
