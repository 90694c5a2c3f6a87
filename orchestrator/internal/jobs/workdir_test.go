package jobs

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/exocomp/exocomp/orchestrator"
)

// A tool may close directories of its own, as Go's module cache does: a daemon
// that is an ordinary user must remove them all the same.
func TestClosedDirectoriesOfAToolAreRemoved(t *testing.T) {
	dir, err := os.MkdirTemp("", "jobs") // one that another user can enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	const other = 65534
	lay := func(attempt orchestrator.AttemptID) string {
		path := workDir(dir, attempt)
		closed := filepath.Join(path, "home", "go", "pkg")
		if err := os.MkdirAll(closed, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(closed, "f"), nil, 0o400); err != nil {
			t.Fatal(err)
		}
		for p := closed; p != filepath.Dir(dir); p = filepath.Dir(p) {
			if os.Geteuid() == 0 {
				if err := os.Chown(p, other, other); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := os.Chmod(closed, 0o500); err != nil {
			t.Fatal(err)
		}
		return path
	}
	p := &Pool{cfg: Config{RuntimeDir: dir, Logger: slog.New(slog.DiscardHandler)}}
	ended, stale := lay("ended123"), lay("stale123")
	asUser(t, other, func() error {
		p.close(&Attempt{WorkDir: ended, slog: p.cfg.Logger}, "record the outcome", nil)
		return nil
	})
	if exists(ended) {
		t.Error("the work directory of an attempt that ended is still there")
	}
	asUser(t, other, func() error { return p.removeStale(nil) })
	if exists(stale) {
		t.Error("the work directory of an attempt that nobody knows is still there")
	}
}

// asUser runs f with the rights that a user has to files, where this is root.
func asUser(t *testing.T, uid int, f func() error) {
	t.Helper()
	done := make(chan error)
	go func() {
		if os.Geteuid() == 0 {
			runtime.LockOSThread() // for ever: the thread ends with its goroutine
			if _, err := unix.SetfsuidRetUid(uid); err != nil {
				done <- err
				return
			}
		}
		done <- f()
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
