// Package child runs the daemon's own short commands: those that ask a tool for
// its version, or print secrets and therefore speak over pipes. Whatever a
// command does or starts, it ends with its context or its limit.
package child

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// grace is how long a command that was told to end may take before it, and what
// it started, is killed.
const grace = 10 * time.Second

// Bounds on what a command may print, so that a state of absurd size ends in an
// error and not in the daemon's memory.
const (
	maxStdout = 256 << 20
	maxStderr = 64 << 10
)

// VersionLimit is for commands that only say which version they are.
const VersionLimit = 30 * time.Second

// ErrLimit says that a command was ended because it had reached its limit.
var ErrLimit = errors.New("it did not end within")

// Spec is a command.
type Spec struct {
	Argv  []string
	Env   []string // complete
	Dir   string
	Stdin []byte
	// Limit is how long it may take; zero leaves that to the context.
	Limit time.Duration
	// Mortal sends the command SIGTERM where this process dies before it: it is
	// for one that may take long.
	Mortal bool

	grace time.Duration // zero: the constant
}

// Run runs a command and returns what it printed, the standard error cut to
// 64 KiB. The error is the context's cause, [ErrLimit], an [exec.ExitError], or
// says what else was wrong. Where the command was ended, so was all of its
// process group.
func Run(ctx context.Context, s Spec) (stdout, stderr []byte, err error) {
	limited := ctx
	if s.Limit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, s.Limit)
		defer cancel()
	}
	cmd := exec.CommandContext(limited, s.Argv[0], s.Argv[1:]...)
	cmd.Env = s.Env
	cmd.Dir = s.Dir
	cmd.Stdin = bytes.NewReader(s.Stdin)
	out, said := &bounded{max: maxStdout}, &bounded{max: maxStderr}
	cmd.Stdout, cmd.Stderr = out, said
	// A wrapper's child is in its group, and holds the pipes as it does.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if s.Mortal {
		// The signal comes when the thread ends that started the command.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace
	if s.grace > 0 {
		cmd.WaitDelay = s.grace
	}
	err = cmd.Run()
	left := errors.Is(err, exec.ErrWaitDelay)
	if cmd.Process != nil && (left || limited.Err() != nil) {
		// The group's number is not given away while one of its processes lives.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	switch {
	case err == nil && out.over:
		err = fmt.Errorf("it printed over %d MiB", maxStdout>>20)
	case err == nil:
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case limited.Err() != nil:
		err = fmt.Errorf("%w %s", ErrLimit, s.Limit)
	case left:
		err = errors.New("it ended, and left a process that keeps its output open")
	}
	return out.Bytes(), said.Bytes(), err
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
