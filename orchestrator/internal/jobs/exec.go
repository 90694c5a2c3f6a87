package jobs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/fault"
)

// verdict is what lock, record and result say about a phase.
type verdict int

const (
	phaseFresh    verdict = iota // nothing ever ran
	phaseLive                    // a supervisor holds the lock
	phaseFinished                // there is a valid result
	phaseLost                    // something ran, and nobody will say how it ended
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
func (a *Attempt) Exec(ctx context.Context, t Tool) (Result, error) {
	if err := t.validate(); err != nil {
		return Result{}, err
	}
	c := a.control(t.Phase)
	lines := newLineReaders(t, c)
	defer lines.close()

	started, adopted := false, true
	for {
		v, lock, err := c.look(a.Job.Attempt.Token)
		if err != nil {
			return Result{}, err
		}
		var exited <-chan struct{}
		switch v {
		case phaseFinished:
			closeLock(lock)
			if err := lines.drain(); err != nil {
				return Result{}, err
			}
			return a.finish(t, c, adopted)
		case phaseLost:
			defer closeLock(lock)
			err := a.lose(ctx, t, c)
			if derr := lines.drain(); derr != nil {
				a.slog.Warn("read what a lost phase wrote", "phase", t.Phase, "err", derr)
			}
			return Result{}, err
		case phaseFresh:
			if started {
				closeLock(lock)
				return Result{}, orchestrator.Errorf(orchestrator.CodeInternal,
					"the supervisor of phase %s ended before it started anything: %s", t.Phase, c.lastWords())
			}
			started, adopted = true, false
			if err := t.prepare(); err != nil {
				closeLock(lock)
				return Result{}, err
			}
			if exited, err = a.start(ctx, t, c, lock); err != nil {
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
		if stuck {
			a.slog.Warn("a supervisor does not end after its result", "phase", t.Phase)
			if err := lines.drain(); err != nil {
				return Result{}, err
			}
			return a.finish(t, c, adopted)
		}
	}
}

// finish returns the result that stands in the control directory.
func (a *Attempt) finish(t Tool, c control, adopted bool) (Result, error) {
	o := c.readOutcome(a.Job.Attempt.Token)
	if o == nil {
		return Result{}, orchestrator.Errorf(orchestrator.CodeInternal, "the result of phase %s is gone", t.Phase)
	}
	a.fault(fault.AfterResult, t.Phase)
	if o.StartError != "" {
		return Result{}, orchestrator.Errorf(orchestrator.CodeFailed, "start %s: %s", t.Phase, o.StartError)
	}
	r := Result{
		ExitCode: o.ExitCode, Signal: o.Signal, StartedAt: o.StartedAt, FinishedAt: o.FinishedAt,
		Cancelled: o.Cancelled, Adopted: adopted,
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

// look reads what became of a phase. Unless the phase is live, the caller has
// its lock then, nil where it was never made.
func (c control) look(token orchestrator.Secret) (verdict, *os.File, error) {
	lock, err := c.tryLock(false)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return phaseFresh, nil, nil
	case err != nil:
		return 0, nil, err
	case lock == nil:
		return phaseLive, nil, nil
	}
	if c.readOutcome(token) != nil {
		return phaseFinished, lock, nil
	}
	r, err := c.readRecord()
	switch {
	case err != nil:
		closeLock(lock)
		return 0, nil, err
	case r == nil:
		return phaseFresh, lock, nil
	default:
		return phaseLost, lock, nil
	}
}

func closeLock(lock *os.File) {
	if lock != nil {
		_ = lock.Close()
	}
}

// wait returns when the phase is worth another look: its supervisor is gone,
// or has left a result and does not go. While it waits it passes on lines and,
// when ctx ends, the wish to end. exited is closed when a supervisor that this
// daemon started ends; nil for another's.
func (a *Attempt) wait(ctx context.Context, c control, lines *lineReaders, exited <-chan struct{}) (stuck bool, err error) {
	w := watch(c.dir)
	defer w.close()
	var (
		ended    = ctx.Done()
		forced   = (<-chan struct{})(a.forced)
		want     syscall.Signal // to be sent to the supervisor, 0 for none
		resultAt time.Time
	)
	for {
		more, err := lines.pass()
		if err != nil {
			return false, err
		}
		if more {
			w.nudge()
		}
		if want != 0 && a.signalSupervisor(c, want) == nil {
			want = 0
		}
		select {
		case <-a.stopping:
			return false, ErrShutdown
		case <-exited:
			return false, nil
		case <-ended:
			ended = nil
			if errors.Is(context.Cause(ctx), ErrShutdown) {
				return false, ErrShutdown
			}
			want = syscall.SIGTERM
		case <-forced:
			forced, want = nil, syscall.SIGUSR1
		case <-w.changes:
		case <-w.tick():
		}
		if free, err := c.lockFree(); err != nil || free {
			return false, err
		}
		if c.readOutcome(a.Job.Attempt.Token) == nil {
			continue
		}
		if resultAt.IsZero() {
			resultAt = time.Now()
		}
		if time.Since(resultAt) > a.cfg.takeResultAfter {
			return true, nil
		}
	}
}
