package ledger

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/exocomp/exocomp/orchestrator"
)

// inOwnMount runs the calling test again in a process with a mount namespace of
// its own, where it returns an empty tmpfs of two megabytes; the namespace and
// all that was mounted end with that process. In the parent it returns "".
func inOwnMount(t *testing.T) string {
	t.Helper()
	const marker = "EXOCOMP_TEST_MOUNT"
	if dir := os.Getenv(marker); dir != "" {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
			t.Fatalf("mount tmpfs: %v", err)
		}
		return dir
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), marker+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
	}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	runtime.LockOSThread() // Pdeathsig counts for the thread
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("in a mount namespace of its own: %v\n%s", err, out)
	}
	return ""
}

// fill writes until the file system has no space left.
func fill(t *testing.T, path string) {
	t.Helper()
	f := must(os.Create(path))(t)
	defer func() { _ = f.Close() }()
	for size := 1 << 16; size > 0; size /= 2 {
		for {
			if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestAFullDiskLosesNothing(t *testing.T) {
	dir := inOwnMount(t)
	if dir == "" {
		return
	}
	path := filepath.Join(dir, "ledger.db")
	l := must(Open(t.Context(), path, Options{}))(t)
	addWorkspace(t, l, "edge")
	run := submitRun(t, l, "edge")
	fill(t, filepath.Join(dir, "ballast"))
	var err error
	written := 0
	for ; err == nil && written < 1000; written++ {
		err = l.PutSealed(t.Context(), "test", "blob", []byte(strings.Repeat("x", 1<<14)))
	}
	wantCode(t, err, orchestrator.CodeInternal, "no space is left", path, "nothing that was recorded is lost")
	wantSteps(t, l, run.ID, "running: ready blocked blocked blocked")

	_, err = Open(t.Context(), filepath.Join(dir, "second.db"), Options{})
	wantCode(t, err, orchestrator.CodeInternal, "no space is left")

	if err := os.Remove(filepath.Join(dir, "ballast")); err != nil {
		t.Fatal(err)
	}
	finish(t, l, claim(t, l), orchestrator.Outcome{}) // the same ledger goes on
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = openAt(t, path, Options{})
	if err := l.Check(t.Context()); err != nil {
		t.Error(err)
	}
	wantSteps(t, l, run.ID, "running: succeeded ready blocked blocked")
}

func TestAReadOnlyFileSystemIsNamed(t *testing.T) {
	dir := inOwnMount(t)
	if dir == "" {
		return
	}
	path := filepath.Join(dir, "ledger.db")
	l := must(Open(t.Context(), path, Options{}))(t)
	addWorkspace(t, l, "edge")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	remount := func(flags uintptr) {
		t.Helper()
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT|flags, ""); err != nil {
			t.Fatal(err)
		}
	}
	remount(unix.MS_RDONLY)
	_, err := Open(t.Context(), path, Options{})
	wantCode(t, err, orchestrator.CodeInternal, "read-only", path, "mount the file system read-write")
	remount(0)
	l = openAt(t, path, Options{})
	if ws := must(l.Workspaces(t.Context()))(t); len(ws) != 1 {
		t.Errorf("workspaces %v, want edge", ws)
	}
}

func TestAnotherUsersLedgerIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	if err := must(Open(t.Context(), path, Options{}))(t).Close(); err != nil {
		t.Fatal(err)
	}
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with its identity
		if os.Getuid() == 0 {
			// The kernel's file system identity belongs to the thread, see setfsuid(2).
			_ = unix.Setfsuid(65534)
		} else {
			_ = os.Chmod(path+".lock", 0)
		}
		l, err := Open(t.Context(), path, Options{})
		if err == nil {
			_ = l.Close()
		}
		result <- err
	}()
	wantCode(t, <-result, orchestrator.CodeInternal, "may not open the ledger", path)
}

// The run that fills the disk can be cancelled, its end be recorded, the daemon
// be stopped and another one started, all while the disk is full.
func TestAFullDiskHasRoomForAnEnd(t *testing.T) {
	dir := inOwnMount(t)
	if dir == "" {
		return
	}
	path, ballast := filepath.Join(dir, "ledger.db"), filepath.Join(dir, "ballast")
	const size = reservePiece * 3 / 2
	l := must(Open(t.Context(), path, Options{Reserve: size}))(t)
	kept := func() int64 {
		t.Helper()
		return must(os.Stat(path + reserveSuffix))(t).Size()
	}
	addWorkspace(t, l, "edge")
	if kept() != size {
		t.Fatalf("the reserve has %d bytes, want %d", kept(), size)
	}
	run := submitRun(t, l, "edge")
	j := claim(t, l)
	fill(t, ballast)
	var err error
	for range 1000 {
		if err = l.PutSealed(t.Context(), "test", "blob", []byte(strings.Repeat("x", 1<<14))); err != nil {
			break
		}
	}
	wantCode(t, err, orchestrator.CodeInternal, "no space is left")
	if kept() != size {
		t.Error("the reserve was used for what need not be recorded")
	}
	must(l.CancelRun(t.Context(), run.ID, false, tester))(t)
	finish(t, l, j, orchestrator.Fail(orchestrator.Errorf(orchestrator.CodeCancelled, "cancelled"), nil))
	wantSteps(t, l, run.ID, "cancelled: cancelled cancelled cancelled cancelled")
	if err := l.StopDaemon(t.Context()); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if f, err := os.OpenFile(filepath.Join(dir, "more"), os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		_ = f.Close()
		fill(t, f.Name()) // what the last close has freed
	}
	l = must(Open(t.Context(), path, Options{Reserve: size}))(t)
	clean := must(l.StartDaemon(t.Context(), "test", 1))(t)
	if !clean || kept() >= size {
		t.Errorf("started after an orderly stop: %v; the reserve has %d bytes", clean, kept())
	}
	for _, f := range []string{ballast, filepath.Join(dir, "more")} {
		_ = os.Remove(f)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = must(Open(t.Context(), path, Options{Reserve: size}))(t)
	addWorkspace(t, l, "next")
	if kept() != size {
		t.Errorf("the reserve has %d bytes when there is room again, want %d", kept(), size)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
