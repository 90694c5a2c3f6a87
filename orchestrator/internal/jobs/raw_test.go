package jobs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exocomp/exocomp/orchestrator"
)

// What a tool printed is as long as it likes and goes with the job, but for an
// apply's that may have lost something; the log stays.
func TestRawFilesGoWithTheJob(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string][]orchestrator.LostCreate{"over": nil, "evidence": {{Address: "vm.a"}}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			cfg := w.config(w.queue())
			cfg.Handler = handlerFunc(func(ctx context.Context, a *Attempt) (orchestrator.Outcome, error) {
				tool := w.tool(phaseSpec{Phase: "apply", Script: `echo said; echo e >&$EXOCOMP_EVENTS_FD`})
				tool.KeepStdout, tool.Events = true, true
				r, err := a.Exec(ctx, tool)
				if !exists(r.StdoutPath) || !exists(r.EventsPath) || RawSize(w.Data, a.Job.Attempt.ID) == 0 {
					t.Errorf("the raw files are not there while the job runs: %+v", r)
				}
				return orchestrator.Outcome{Lost: lost}, err
			})
			runPool(t, cfg, func() { w.finished(t) })
			c := w.control("apply")
			if kept := exists(c.stdoutPath()) || exists(c.eventsPath()); kept != (lost != nil) || exists(c.roomPath()) {
				t.Errorf("raw files are there: %v; the room: %v", kept, exists(c.roomPath()))
			}
			if log := w.log(t); !strings.Contains(log, "said") || !exists(c.path("result.json")) {
				t.Errorf("the log or the result went too: %q", log)
			}
		})
	}
}

// A daemon that died between recording an end and cleaning up left its work
// directory, which says that the raw files are to go, too.
func TestRawFilesOfStaleAttemptsAreRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := control{filepath.Join(ControlDir(w.Data, "gone1234"), "apply")}
	for _, dir := range []string{c.dir, workDir(w.Runtime, "gone1234")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(c.stdoutPath(), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := w.config(w.queue())
	cfg.Handler = w
	runPool(t, cfg, func() { w.finished(t) })
	if exists(c.stdoutPath()) {
		t.Error("what the tool printed is still there")
	}
}

// A tool that has filled the disk still has a result.
func TestAFullDiskHasRoomForAResult(t *testing.T) {
	t.Parallel()
	const marker = "EXOCOMP_TEST_MOUNT"
	if os.Getenv(marker) == "" {
		inOwnMount(t, marker)
		return
	}
	w := newWorld(t)
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", w.Data, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(w.Data, unix.MNT_DETACH) })
	a := w.attempt(t)
	tool := w.tool(phaseSpec{Phase: "apply", Graceful: true, Script: "cat /dev/zero >" + filepath.Join(w.Data, "ballast")})
	ended := make(chan error, 1)
	go func() {
		r, err := a.Exec(t.Context(), tool)
		if err == nil && r.ExitCode != 1 {
			t.Errorf("result = %+v, want that of cat on a full disk", r)
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("no result within 20 s")
		_ = os.Remove(filepath.Join(w.Data, "ballast"))
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// inOwnMount runs the calling test again in a process with a mount namespace of
// its own, where marker is set.
func inOwnMount(t *testing.T, marker string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), marker+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
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
}
