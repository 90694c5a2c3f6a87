package jobs

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

// The raw files of a phase are what its tool writes, without a limit: recovery
// reads them, so nothing may be missing while the job runs. They go when the
// ledger has its outcome. The log, which has limits, stays.
func (c control) rawPaths() []string {
	return []string{c.stdoutPath(), c.eventsPath(), c.roomPath()}
}

// rawFiles lists the raw files of an attempt's phases, there or not.
func rawFiles(attemptDir string) ([]string, error) {
	entries, err := os.ReadDir(attemptDir)
	if err != nil {
		return nil, ignoreMissing(err)
	}
	var list []string
	for _, e := range entries {
		if e.IsDir() {
			list = append(list, control{filepath.Join(attemptDir, e.Name())}.rawPaths()...)
		}
	}
	return list, nil
}

// dropRaw removes the raw files of an attempt that is over.
func dropRaw(attemptDir string) error {
	list, err := rawFiles(attemptDir)
	errs := []error{err}
	for _, path := range list {
		errs = append(errs, ignoreMissing(os.Remove(path)))
	}
	return errors.Join(errs...)
}

// RawSize returns how many bytes the disk holds of what an attempt's tools have
// written, its log apart.
func RawSize(dataDir string, id orchestrator.AttemptID) (bytes int64) {
	list, err := rawFiles(ControlDir(dataDir, id))
	if err != nil {
		return 0
	}
	for _, path := range list {
		var st unix.Stat_t
		if unix.Stat(path, &st) == nil {
			bytes += st.Blocks * 512 // stat(2): of that size always
		}
	}
	return bytes
}

// roomSize is kept free for a phase's result, and its name, on a disk that the
// tool fills.
const roomSize = 64 << 10

func (c control) roomPath() string { return c.path("room") }

// keepRoom makes the file that keeps it. It is a courtesy: without one a result
// waits until there is room.
func (c control) keepRoom() error {
	f, err := os.OpenFile(c.roomPath(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, durable.PrivateFile)
	if err != nil {
		return err
	}
	if err := unix.Fallocate(int(f.Fd()), 0, 0, roomSize); err != nil {
		// Not every file system can: then it is written.
		if _, err := f.Write(make([]byte, roomSize)); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return f.Close()
}

// giveRoom gives it back and reports whether there was some.
func (c control) giveRoom() bool { return os.Remove(c.roomPath()) == nil }
