package jobs

import (
	"context"
	"errors"
	"syscall"

	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

// lose ends what a phase left whose supervisor died, and returns a
// [*LostError]. A tool with a state to save is told to end, once in its life,
// and waited for: its supervisor's death did not stop it. The caller holds the
// phase's lock.
func (a *Attempt) lose(ctx context.Context, t Tool, c control) error {
	r, err := c.readRecord()
	if err != nil {
		return err
	}
	boot, err := readBootID(a.cfg.BootIDFile)
	if err != nil {
		return err
	}
	lost := &LostError{Phase: t.Phase, SameBoot: r.BootID == boot}
	lost.StdoutPath, lost.EventsPath = t.kept(c)
	s := sweeper{token: a.Job.Attempt.Token.Reveal(), workDir: a.WorkDir}
	if lost.SameBoot {
		s.cgroup = r.Cgroup
		if r.Graceful {
			s.gentle = DefaultGrace
			if err := a.endGracefully(ctx, r.Tool, c); err != nil {
				return err
			}
		}
	}
	if err := s.sweep(sweepLimit); err != nil {
		a.slog.Error("end what a lost phase left", "phase", t.Phase, "err", err)
	}
	if !t.KeepStdout {
		// Nobody is left who would take the secrets out of it.
		if err := durable.Remove(c.stdoutPath()); err != nil {
			a.slog.Error("remove the output of a lost phase", "phase", t.Phase, "err", err)
		}
	}
	a.slog.Warn("a phase is lost", "phase", t.Phase, "same_boot", lost.SameBoot)
	a.Logf("exocomp: %s", lost)
	return lost
}

// endGracefully tells a tool without a supervisor to end and waits until it
// has. Only a person's force makes it end sooner, only a shutdown makes this
// return sooner.
func (a *Attempt) endGracefully(ctx context.Context, tool process, c control) error {
	if tool.alive() && c.markTerminated() {
		a.slog.Warn("told a tool without a supervisor to end", "pid", tool.PID)
		_ = tool.signal(syscall.SIGTERM)
	}
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
