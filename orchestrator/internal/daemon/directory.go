package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
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
