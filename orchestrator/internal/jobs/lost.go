package jobs

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"

	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

// lose ends what a phase left whose supervisor died, and returns a
// [*LostError].
func (a *Attempt) lose(ctx context.Context, t Tool, c control, f finding) error {
	if err := a.endLost(ctx, c, f, t.Graceful); err != nil {
		return err
	}
	lost := &LostError{Phase: t.Phase, SameBoot: f.sameBoot, Removed: f.removed}
	lost.StdoutPath, lost.EventsPath = t.kept(c)
	if !t.KeepStdout {
		// Nobody is left who would take the secrets out of it.
		if err := durable.Remove(c.stdoutPath()); err != nil {
			a.slog.Error("remove the output of a lost phase", "phase", t.Phase, "err", err)
		}
	}
	a.read[t.Phase] = true
	if f.removed {
		// For what is said from now on; the files of before are gone.
		if err := durable.Mkdir(a.ControlDir); err != nil {
			a.slog.Error("make the control directory again", "err", err)
		}
	}
	a.slog.Warn("a phase is lost", "phase", t.Phase, "same_boot", lost.SameBoot)
	a.Logf("exocomp: %s", lost)
	return lost
}

// endLost ends what is left of a phase whose supervisor died. A tool with a
// state to save is told to end, once in its life, and waited for: its
// supervisor's death did not stop it. The record says whether it is one;
// graceful does where the record was removed. The caller holds the phase's lock
// where there is one. The error is [ErrShutdown].
func (a *Attempt) endLost(ctx context.Context, c control, f finding, graceful bool) error {
	s := sweeper{token: a.Job.Attempt.Token.Reveal(), workDir: a.WorkDir}
	switch {
	case f.removed:
		s.cgroup = leftCgroup(string(a.Job.Attempt.ID), filepath.Base(c.dir))
		if graceful {
			s.gentle = DefaultGrace
			if err := a.endUnrecorded(ctx, c); err != nil {
				return err
			}
		}
	case f.sameBoot:
		s.cgroup = f.record.Cgroup
		if f.record.Graceful {
			s.gentle = DefaultGrace
			if err := a.endGracefully(ctx, f.record.Tool, c); err != nil {
				return err
			}
		}
	}
	if err := s.sweep(sweepLimit); err != nil {
		a.slog.Error("end what a lost phase left", "phase", filepath.Base(c.dir), "err", err)
	}
	return nil
}

// endGracefully tells a tool without a supervisor to end and waits until it
// has, as [Attempt.awaitEnd] does.
func (a *Attempt) endGracefully(ctx context.Context, tool process, c control) error {
	if tool.alive() && c.markTerminated() {
		a.slog.Warn("told a tool without a supervisor to end", "pid", tool.PID)
		_ = tool.signal(syscall.SIGTERM)
		_ = tool.signal(syscall.SIGCONT) // one that was stopped would not hear it
	}
	return a.awaitEnd(ctx, tool)
}

// awaitEnd returns when a tool has ended that was told to. Only a person's force
// makes it end sooner, only a shutdown makes this return sooner.
func (a *Attempt) awaitEnd(ctx context.Context, tool process) error {
	gone := tool.watchEnd()
	defer gone.close()
	for {
		if !tool.alive() {
			return nil
		}
		if a.isForced() {
			_ = tool.signal(syscall.SIGKILL)
		}
		if isClosed(a.stopping) || errors.Is(context.Cause(ctx), ErrShutdown) {
			return ErrShutdown
		}
		gone.poll(watchFallback)
	}
}
