package jobs

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func command(stdin []byte, args ...string) (string, error) {
	var env []string
	for len(args) > 0 && strings.Contains(args[0], "=") {
		env, args = append(env, args[0]), args[1:]
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin = strings.NewReader(string(stdin))
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func run(t *testing.T, args ...string) {
	t.Helper()
	if out, err := command(nil, args...); err != nil {
		t.Fatalf("%v: %v: %s", args, err, out)
	}
}

// masterMain is like an ssh master: it has no environment that could name it,
// and a socket in the job's work directory.
func masterMain(socket, ready string) int {
	if _, err := net.Listen("unix", socket); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := os.WriteFile(ready, nil, 0o600); err != nil {
		return 1
	}
	time.Sleep(time.Hour)
	return 0
}

// leaving leaves three strays: with the token, without an environment, and a
// master. It is done when all of them run.
func leaving(t *testing.T, w *world, end string) Tool {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tool := w.tool(phaseSpec{Phase: "play", Script: `
(setsid sh -c 'touch a; exec sleep 1000' &)
(setsid env -i /bin/sh -c '/usr/bin/touch b; exec /bin/sleep 1001' &)
(setsid env -i ` + self + ` test-master "$CP/m" c &)
while [ ! -e a ] || [ ! -e b ] || [ ! -e c ]; do sleep 0.02; done
` + end})
	tool.Env = append(tool.Env, "CP="+filepath.Join(workDir(w.Runtime, w.job().Attempt.ID), "cp"))
	return tool
}

// strays counts the processes that leaving leaves.
func strays(t *testing.T, w *world) int {
	t.Helper()
	all, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range all {
		cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", p.PID))
		if cwd == w.Scratch {
			n++
		}
	}
	return n
}

func TestSweepAtASuccessfulEnd(t *testing.T) {
	t.Parallel()
	for _, noCgroups := range []bool{false, true} {
		t.Run(fmt.Sprintf("without cgroups %v", noCgroups), func(t *testing.T) {
			w := newWorld(t)
			w.NoCgroups = noCgroups
			r, err := w.attempt(t).Exec(t.Context(), leaving(t, w, "exit 0"))
			if err != nil || !r.Succeeded() {
				t.Fatalf("result = %+v, %v", r, err)
			}
			if n := strays(t, w); n != 0 {
				t.Errorf("%d processes are left behind the end", n)
			}
		})
	}
}

func TestSweepAfterTheSupervisorDied(t *testing.T) {
	t.Parallel()
	for _, noCgroups := range []bool{false, true} {
		t.Run(fmt.Sprintf("without cgroups %v", noCgroups), func(t *testing.T) {
			if own, err := ownCgroup(); !noCgroups && (err != nil || syscall.Access(own, 2) != nil) {
				t.Skip("no cgroup may be made here")
			}
			w := newWorld(t)
			w.NoCgroups = noCgroups
			a := w.attempt(t)
			done := make(chan error, 1)
			go func() {
				_, err := a.Exec(t.Context(), leaving(t, w, "touch ready; exec sleep 1002"))
				done <- err
			}()
			eventually(t, "the strays run", func() bool { return exists(w.scratch("ready")) })
			r, err := w.control("play").readRecord()
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Supervisor.signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if err := <-done; !errors.Is(err, ErrLost) {
				t.Errorf("error = %v, want lost", err)
			}
			// Without a cgroup nothing marks the one without an environment.
			want := 0
			if noCgroups {
				want = 1
			}
			if n := strays(t, w); n != want {
				t.Errorf("%d processes are left, want %d", n, want)
			}
			endStrays(t, w)
		})
	}
}

func endStrays(t *testing.T, w *world) {
	t.Helper()
	all, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", p.PID)); cwd == w.Scratch {
			_ = p.signal(syscall.SIGKILL)
		}
	}
}

// A wrapper script that dies before the tool that it started must not make the
// sweep kill that tool with its state unsaved.
func TestSweepAfterAGracefulToolIsGentle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, err := w.attempt(t).Exec(t.Context(), w.tool(phaseSpec{Phase: "apply", Graceful: true, Script: `
(trap 'sleep 0.3; echo saved >>state; exit' TERM; touch a; while :; do sleep 0.02; done) &
while [ ! -e a ]; do sleep 0.02; done`}))
	if err != nil || !r.Succeeded() {
		t.Fatalf("result = %+v, %v", r, err)
	}
	if got := w.lines(t, "state"); len(got) != 1 {
		t.Errorf("the tool below the wrapper saved %d times, want once", len(got))
	}
}
