package jobs

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/fault"
)

// Exec runs t under a supervisor of its own and waits for its end. A tool that
// fails is a Result, not an error. An attempt runs one phase at a time: what
// carries its token is ended with each.
//
// It may be repeated for the same attempt and phase, by this daemon or a later
// one, and never runs the tool twice: a finished phase gives its result again,
// a live one is adopted. Errors:
//
//   - [ErrShutdown] as ctx's cause: the tool goes on, return this error.
//   - ctx ended for another reason before the tool was started: ctx's cause.
//     After that the tool is told to end and the result says Cancelled.
//   - [ErrLost], always a [*LostError]: return it, or first read the journal.
//   - [orchestrator.CodeFailed]: the tool could not be started.
//
// That a file cannot be looked at for a while is no error: a tool may be
// running, and it is looked at again.
func (a *Attempt) Exec(ctx context.Context, t Tool) (Result, error) {
	if err := t.validate(); err != nil {
		return Result{}, err
	}
	c := a.control(t.Phase)
	lines := newLineReaders(t, c)
	defer lines.close()

	started := false
	for {
		found, err := a.see(c)
		if err != nil {
			return Result{}, err
		}
		var exited <-chan struct{}
		switch found.verdict {
		case phaseFinished:
			closeLock(found.lock)
			a.drain(lines, t.Phase)
			return a.finish(ctx, t, c, found.outcome)
		case phaseLost:
			defer closeLock(found.lock)
			err := a.lose(ctx, t, c, found)
			a.drain(lines, t.Phase)
			return Result{}, err
		case phaseFresh:
			if a.over != nil {
				closeLock(found.lock)
				return Result{}, a.over
			}
			if started {
				closeLock(found.lock)
				return Result{}, orchestrator.Errorf(orchestrator.CodeInternal,
					"the supervisor of phase %s ended before it started anything: %s", t.Phase, c.lastWords())
			}
			started = true
			if err := t.prepare(); err != nil {
				closeLock(found.lock)
				return Result{}, err
			}
			if exited, err = a.start(ctx, t, c, found.lock); err != nil {
				return Result{}, err
			}
		case phaseLive:
			if !started && ctx.Err() == nil {
				a.adopted(ctx, t.Phase)
			}
		}
		stuck, err := a.wait(ctx, c, lines, exited)
		if err != nil {
			return Result{}, err
		}
		if stuck != nil {
			a.slog.Warn("a supervisor does not end after its result", "phase", t.Phase)
			a.drain(lines, t.Phase)
			return a.finish(ctx, t, c, stuck)
		}
	}
}

// drain gives the lines that are left. They are a courtesy: the files stay for
// whoever needs all of them.
func (a *Attempt) drain(lines *lineReaders, phase string) {
	if err := lines.drain(); err != nil {
		a.slog.Warn("read what a phase wrote", "phase", phase, "err", err)
	}
}

// finish makes a result of what the supervisor left.
func (a *Attempt) finish(ctx context.Context, t Tool, c control, o *outcome) (Result, error) {
	a.fault(fault.AfterResult, t.Phase)
	a.read[t.Phase] = true
	if o.StartError != "" {
		return Result{}, orchestrator.Errorf(orchestrator.CodeFailed, "start %s: %s", t.Phase, o.StartError)
	}
	r := Result{
		ExitCode: o.ExitCode, Signal: o.Signal, StartedAt: o.StartedAt, FinishedAt: o.FinishedAt,
		Cancelled: o.Told && a.isCancelled(ctx),
	}
	r.StdoutPath, r.EventsPath = t.kept(c)
	return r, nil
}

// kept returns the paths of the raw files that stay for the driver.
func (t Tool) kept(c control) (stdout, events string) {
	if t.KeepStdout {
		stdout = c.stdoutPath()
	}
	if t.Events {
		events = c.eventsPath()
	}
	return stdout, events
}

// wait returns when the phase is worth another look: its supervisor is gone,
// or has left a result, which is returned, and does not go. While it waits it
// passes on lines and, when ctx ends, the wish to end. exited is closed when a
// supervisor that this daemon started ends; nil for another's.
func (a *Attempt) wait(ctx context.Context, c control, lines *lineReaders, exited <-chan struct{}) (stuck *outcome, err error) {
	w := watch(c.dir)
	defer w.close()
	var (
		ended    = ctx.Done()
		forced   = (<-chan struct{})(a.forced)
		want     syscall.Signal // to be sent to the supervisor, 0 for none
		forcedAt time.Time
		orphan   *process // the supervisor, once its directory was removed
		resultAt time.Time
		told     bool // that it could not be looked at
	)
	complain := func(err error) {
		if err != nil && !told {
			told = true
			a.slog.Warn("look at a running phase: trying again", "err", err)
		}
	}
	for {
		more, err := lines.pass()
		if more {
			w.nudge()
		}
		complain(err)
		if want != 0 && a.signalSupervisor(c, want) == nil {
			want = 0
		}
		select {
		case <-a.stopping:
			return nil, ErrShutdown
		case <-exited:
			return nil, nil
		case <-ended:
			ended = nil
			if errors.Is(context.Cause(ctx), ErrShutdown) {
				return nil, ErrShutdown
			}
			want = signalEnd
		case <-forced:
			forced, want, forcedAt = nil, signalForce, time.Now()
		case <-w.changes:
		case <-w.tick():
		}
		free, err := c.lockFree()
		if errors.Is(err, fs.ErrNotExist) {
			free, err = a.orphanEnded(ctx, c, &orphan)
		}
		if free {
			return nil, nil
		}
		if !forcedAt.IsZero() && time.Since(forcedAt) > a.cfg.takeResultAfter {
			a.killSupervisor(c)
			forcedAt = time.Now()
		}
		var o *outcome
		if err == nil {
			o, err = c.readOutcome(a.Job.Attempt.Token)
		}
		complain(err)
		if o == nil {
			continue
		}
		if resultAt.IsZero() {
			resultAt = time.Now()
		}
		if time.Since(resultAt) > a.cfg.takeResultAfter {
			return o, nil
		}
	}
}
