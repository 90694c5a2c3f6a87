package child

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// run runs a script for /bin/sh.
func run(ctx context.Context, script string, s Spec) (stdout, stderr string, err error) {
	s.Argv = []string{"/bin/sh", "-c", script}
	s.Env = []string{"PATH=/usr/bin:/bin", "A=b"}
	s.Dir = "/"
	out, said, err := Run(ctx, s)
	return string(out), string(said), err
}

func TestRun(t *testing.T) {
	out, said, err := run(t.Context(), `cat; echo "$A $PWD"; echo no >&2; exit 3`, Spec{Stdin: []byte("in\n")})
	var exit *exec.ExitError
	if out != "in\nb /\n" || said != "no\n" || !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("%q, %q, %v", out, said, err)
	}
}

// What a wrapper starts holds its pipes: the command ends with all of it.
func TestNothingOfACommandOutlivesItsEnd(t *testing.T) {
	cancelled := errors.New("somebody cancelled")
	for name, c := range map[string]struct {
		script string
		spec   Spec
		cancel bool
		want   string
	}{
		"cancelled":           {`sleep 100 & echo $!; wait`, Spec{}, true, cancelled.Error()},
		"cancelled, stubborn": {`trap "" TERM; sleep 100 & echo $!; wait`, Spec{grace: 100 * time.Millisecond}, true, cancelled.Error()},
		"too slow":            {`sleep 100 & echo $!; wait`, Spec{Limit: time.Second}, false, "it did not end within 1s"},
		"a process is left":   {`sleep 100 & echo $!`, Spec{grace: time.Second}, false, "it ended, and left a process that keeps its output open"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if c.cancel {
				time.AfterFunc(time.Second, func() { cancel(cancelled) })
			}
			began := time.Now()
			out, _, err := run(ctx, c.script, c.spec)
			if err == nil || err.Error() != c.want {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if took := time.Since(began); took > 8*time.Second {
				t.Errorf("it took %s", took)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(out))
			if err != nil {
				t.Fatalf("it printed no pid: %v", err)
			}
			for range 100 { // a killed process is gone when somebody has reaped it
				if gone(pid) {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
			t.Errorf("process %d is left", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		})
	}
}

// gone reports whether a process has ended, reaped or not.
func gone(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || bytes.Contains(stat, []byte(") Z "))
}
