package tofu

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// childWait is how long a child that was asked to end may take before its pipes
// are closed. Children here only read, so nothing is lost.
const childWait = 10 * time.Second

// childOutput bounds what a child may print, so that a state of absurd size
// ends in an error and not in the daemon's memory.
const childOutput = 256 << 20

type childSpec struct {
	argv, env []string
	dir       string
	stdin     []byte
}

// child runs a short command over pipes and returns its standard output, which
// may hold secrets and is therefore never written anywhere. The error carries
// what the command said on standard error.
func child(ctx context.Context, spec childSpec) ([]byte, error) {
	cmd := exec.CommandContext(ctx, spec.argv[0], spec.argv[1:]...)
	cmd.Env = spec.env
	cmd.Dir = spec.dir
	cmd.Stdin = bytes.NewReader(spec.stdin)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = childWait
	stdout, stderr := &bounded{max: childOutput}, &bounded{max: 64 << 10}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err := cmd.Run()
	if stdout.over {
		return nil, fmt.Errorf("%s printed over %d MiB", strings.Join(spec.argv[1:], " "), childOutput>>20)
	}
	if err != nil {
		if said := plainText(stderr.String()); said != "" {
			return nil, fmt.Errorf("%s: %w: %s", strings.Join(spec.argv[1:], " "), err, said)
		}
		return nil, fmt.Errorf("%s: %w", strings.Join(spec.argv[1:], " "), err)
	}
	return stdout.Bytes(), nil
}

// bounded keeps the first max bytes and swallows the rest.
type bounded struct {
	bytes.Buffer
	max  int
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := b.max - b.Len(); len(p) > room {
		b.over = true
		b.Buffer.Write(p[:room])
		return len(p), nil
	}
	return b.Buffer.Write(p)
}

// plainText makes tofu's boxed, multi-line diagnostics one line.
func plainText(s string) string {
	fields := strings.FieldsFunc(s, func(r rune) bool {
		return r == '\n' || r == '│' || r == '╷' || r == '╵'
	})
	var parts []string
	for _, f := range fields {
		if f = strings.TrimSpace(f); f != "" {
			parts = append(parts, f)
		}
	}
	return strings.Join(parts, " ")
}
