package e2e

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3" // to forge the ledger of a stopped daemon
	"golang.org/x/sys/unix"

	"github.com/exocomp/exocomp/orchestrator"
)

// refusesToStart starts a daemon that must end with a sentence that says each
// part.
func (s *site) refusesToStart(code int, parts ...string) {
	s.t.Helper()
	running := s.daemon
	d := s.launch()
	s.daemon = running
	select {
	case <-d.exited:
	case <-time.After(patience):
		s.t.Fatalf("the daemon goes on: %s", d.log.String())
	}
	r := result{args: []string{"serve"}, stderr: d.log.String(), code: d.cmd.ProcessState.ExitCode()}
	if r.code != code {
		s.t.Errorf("want exit code %d of %s", code, r)
	}
	for _, p := range parts {
		if !strings.Contains(r.stderr, p) {
			s.t.Errorf("the daemon does not say %q: %s", p, r)
		}
	}
	s.assertSentence(r)
}

// TestDiskLedgerBelongsToOneDaemon: only the daemon has the ledger open while a
// chain runs, a second daemon is told so, and a ledger of a newer version is
// left as it is.
func TestDiskLedgerBelongsToOneDaemon(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	s.workspace("edge", thisMachine())
	g := s.gate("play")
	run := string(s.submit("edge", s.playbook("p", rawPlay("tf:edge", g.line()))))
	g.await(1)

	holders := s.openers(filepath.Join(s.data(), "ledger.db"))
	s.holds(len(holders) == 1 && holders[0] == s.daemon.cmd.Process.Pid, "only the daemon has the ledger open", holders)
	s.refusesToStart(4, "in use by", fmt.Sprint(s.daemon.cmd.Process.Pid))
	g.open()
	s.holds(s.awaitRun(run).State == orchestrator.RunSucceeded, "the first daemon goes on")
	g.ran(1)
	s.stop()

	known := s.forgeVersion(func(int) int { return 1 << 20 })
	before := s.read(filepath.Join(s.data(), "ledger.db"))
	s.refusesToStart(4, "newer exocomp", "upgrade exocomp")
	s.holds(s.read(filepath.Join(s.data(), "ledger.db")) == before, "a newer ledger is left as it is")
	s.forgeVersion(func(int) int { return known })
	s.start()
	s.holds(s.run(run).State == orchestrator.RunSucceeded, "nothing is lost")
}

// openers lists the processes that have a file open.
func (s *site) openers(path string) []int {
	s.t.Helper()
	fds, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		s.t.Fatal(err)
	}
	var pids []int
	for _, fd := range fds {
		var pid int
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, path) {
			if _, err := fmt.Sscanf(fd, "/proc/%d/", &pid); err == nil && !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// forgeVersion changes the schema version of a stopped daemon's ledger and
// returns the one that it had.
func (s *site) forgeVersion(to func(int) int) int {
	s.t.Helper()
	db, err := sql.Open("sqlite3", filepath.Join(s.data(), "ledger.db"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var version int
	if err := db.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
		s.t.Fatal(err)
	}
	if _, err := db.Exec(fmt.Sprintf("PRAGMA user_version = %d", to(version))); err != nil {
		s.t.Fatal(err)
	}
	return version
}

// smallDisk mounts a tmpfs of so many MiB as the data directory.
func (s *site) smallDisk(mib int) {
	s.t.Helper()
	if err := os.MkdirAll(s.data(), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", s.data(), "tmpfs", 0, fmt.Sprintf("size=%dm,mode=0700", mib)); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := unix.Unmount(s.data(), 0); err != nil {
			s.t.Errorf("unmount: %v", err)
		}
	})
}

// fill takes all space that is left, and returns what gives it back.
func (s *site) fill() (free func()) {
	s.t.Helper()
	path := filepath.Join(s.data(), "filler")
	f, err := os.Create(path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for _, block := range []int{1 << 16, 1 << 12, 1} {
		for err == nil {
			_, err = f.Write(make([]byte, block))
		}
		if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, io.ErrShortWrite) {
			s.t.Fatal(err)
		}
		err = nil
	}
	return func() {
		if err := os.Remove(path); err != nil {
			s.t.Fatal(err)
		}
	}
}

func TestDiskReadOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.smallDisk(32)
	s.start()
	s.workspace("edge", thisMachine())
	s.stop()
	remount := func(flags uintptr) {
		t.Helper()
		if err := unix.Mount("tmpfs", s.data(), "tmpfs", unix.MS_REMOUNT|flags, "size=32m"); err != nil {
			t.Fatal(err)
		}
	}
	remount(unix.MS_RDONLY)
	s.refusesToStart(1, "read-only", s.data())
	remount(0)
	s.start()
	s.ok("workspace", "show", "edge")
	s.converge("edge", s.playbook("p", rawPlay("tf:edge", "true")))
}

// TestDiskFull: the disk fills up while a play runs. Nothing is done twice or
// forgotten, new work is refused with a sentence, and once there is space again
// everything works.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.smallDisk(32)
	s.start()
	s.workspace("edge", thisMachine())
	g := s.gate("play")
	play := s.playbook("p", rawPlay("tf:edge", g.line(), "echo after"))
	run := string(s.submit("edge", play))
	g.await(1)
	free := s.fill()

	s.refuses(mistake{1, []string{"no space is left", s.data(), "nothing that was recorded is lost"}, []string{"workspace", "apply", "edge"}})
	s.holds(s.run(run).State == orchestrator.RunRunning, "reading still works")
	playing := s.supervised().Tool
	g.open()
	s.await("the end of the play", func() bool { return !playing.alive() })
	free()
	ended := s.awaitRun(run)
	s.holds(ended.State == orchestrator.RunSucceeded, "the run ends as it went", ended.FailedStep())
	g.ran(1)
	s.converge("edge", play)
	g.ran(2)
	if err := s.daemon.cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the daemon did not survive the full disk: %v", err)
	}

	// A daemon that has no space at its start says so and loses nothing.
	s.stop()
	free = s.fill()
	d := s.launch()
	select {
	case <-d.log.seen("daemon is ready"):
	case <-d.exited:
		s.holds(strings.Contains(d.log.String(), "no space is left"), "the start fails with a sentence", d.log.String())
	case <-time.After(patience):
		t.Fatalf("the daemon neither starts nor ends: %s", d.log.String())
	}
	free()
	d.kill()
	s.start()
	s.holds(len(jsonOf[[]orchestrator.Run](s, "provision", "list")) == 2, "nothing is lost")
}
