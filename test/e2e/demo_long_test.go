//go:build long

package e2e

import (
	"bytes"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestLongDemo: the demonstration does all that it says, and removes everything.
func TestLongDemo(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "../demo/run.sh")
	// The script ends what it has started when it is asked to.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, stdout.String(), stderr.String())
	}
	out := strings.TrimSpace(stdout.String())
	for _, line := range []string{
		"a later apply adds a host, and nothing about the schedule changes",
		"the next tick waits for it, pins, onboards and converges it",
		"done; everything is removed again",
	} {
		if !strings.Contains(out, "== "+line) {
			t.Errorf("it does not come to %q:\n%s\n%s", line, out, stderr.String())
		}
	}
	if last := out[strings.LastIndex(out, "\n")+1:]; !strings.Contains(last, "done; everything is removed again") {
		t.Errorf("its last line is %q", last)
	}
}
