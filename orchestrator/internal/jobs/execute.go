package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

// execute runs one claimed or recovered job to its end, or until ctx ends.
func (p *Pool) execute(ctx context.Context, job orchestrator.Job) {
	a := newAttempt(p.cfg, job, ctx.Done())
	jobCtx, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	defer context.AfterFunc(ctx, func() { end(ErrShutdown) })()
	defer p.watchCancel(ctx, a, end)()

	var outcome orchestrator.Outcome
	err := a.prepare()
	if err == nil {
		outcome, err = p.handle(jobCtx, a)
	}
	if !errors.Is(err, ErrShutdown) {
		outcome, err = p.settle(ctx, a, outcome, err)
	}
	switch {
	case errors.Is(err, ErrShutdown):
		return // the job stays as it is
	case errors.Is(err, ErrLost):
		p.interrupt(ctx, a, err.Error(), true)
		return
	case err != nil:
		outcome = orchestrator.Fail(err, nil)
	}
	if !outcome.Succeeded() && ctx.Err() != nil {
		return // the shutdown may be why; whatever it was, the next daemon meets it too
	}
	if a.cutByDrain(outcome) {
		if len(outcome.Lost) == 0 {
			p.interrupt(ctx, a, "a drain ended it in order", false)
			return
		}
		outcome.Failure.Code = orchestrator.CodeFailed // nobody cancelled it
	}
	p.record(ctx, a, outcome)
}

// cutByDrain reports whether the attempt would have gone on but for a drain.
func (a *Attempt) cutByDrain(o orchestrator.Outcome) bool {
	return a.drained.Load() && !a.asked.Load() && o.Failure != nil && o.Failure.Code == orchestrator.CodeCancelled
}

// handle calls the handler. Once ctx has ended any error is its cause: what a
// library said about that is nobody's failure.
func (p *Pool) handle(ctx context.Context, a *Attempt) (outcome orchestrator.Outcome, err error) {
	defer func() {
		if r := recover(); r != nil {
			a.slog.Error("a handler panicked", "panic", r, "stack", string(debug.Stack()))
			outcome, err = orchestrator.Outcome{}, orchestrator.Errorf(orchestrator.CodeInternal, "the %s handler panicked: %v", a.kind(), r)
		}
		if err != nil && ctx.Err() != nil && !errors.Is(err, ErrLost) {
			err = context.Cause(ctx)
		}
	}()
	return p.cfg.Handler.Handle(ctx, a)
}

// watchCancel passes on a person's wish to end the job, and that of a drain to
// end all, until stop is called: also while the job's tools are waited for and
// its outcome is recorded. It has looked once when it returns, so that how an
// adopted tool ended is not taken for its failure.
func (p *Pool) watchCancel(ctx context.Context, a *Attempt, cancel context.CancelCauseFunc) (stop func()) {
	ctx, end := context.WithCancel(ctx)
	watched := make(chan struct{})
	changed := p.cfg.Queue.Changed()
	forced, again := p.lookForEnd(ctx, a, cancel)
	go func() {
		defer close(watched)
		for !forced {
			select {
			case <-ctx.Done():
				return
			case <-changed:
			case <-again:
			}
			changed = p.cfg.Queue.Changed()
			forced, again = p.lookForEnd(ctx, a, cancel)
		}
	}()
	return func() {
		end()
		<-watched
	}
}

// lookForEnd ends the job where somebody wants it. Once it was forced there is
// nothing more to look for. What could not be asked is asked again.
func (p *Pool) lookForEnd(ctx context.Context, a *Attempt, cancel context.CancelCauseFunc) (forced bool, again <-chan time.Time) {
	job, err := p.cfg.Queue.Job(ctx, a.Job.ID)
	draining := false
	if err == nil && !job.CancelRequested {
		draining, err = p.cfg.Queue.Draining(ctx)
	}
	switch {
	case err != nil && ctx.Err() == nil:
		a.slog.Warn("look whether the job is cancelled: trying again", "err", err)
		return false, time.After(claimRetry)
	case err == nil && job.CancelForce:
		a.asked.Store(true)
		cancel(ErrForced)
		a.force()
		return true, nil
	case err == nil && job.CancelRequested:
		a.asked.Store(true)
		cancel(ErrCancelled)
	case draining:
		a.drained.Store(true)
		cancel(ErrDrained)
	}
	return false, nil
}

// record makes the outcome durable. An attempt that is not the live one any
// more has nothing to say. An outcome that the ledger will never take must not
// leave the job running for ever: then what is kept is that it failed.
func (p *Pool) record(ctx context.Context, a *Attempt, o orchestrator.Outcome) {
	finish := func(o orchestrator.Outcome) error {
		return a.retry(ctx, "record the outcome", func(ctx context.Context) error {
			_, err := p.cfg.Queue.FinishJob(ctx, a.Job.ID, a.Job.Attempt.Token, o)
			return err
		})
	}
	err := finish(o)
	for _, lost := range [][]orchestrator.LostCreate{o.Lost, nil} {
		if orchestrator.CodeOf(err) != orchestrator.CodeInvalid {
			break
		}
		a.slog.Error("record the outcome: recording a failure instead", "err", err)
		bare := orchestrator.Fail(orchestrator.Errorf(orchestrator.CodeInternal, "the outcome cannot be recorded: %w", err), nil)
		bare.Lost = lost
		err = finish(bare)
	}
	a.evidence = len(o.Lost) > 0
	p.close(a, "record the outcome", err)
}

// interrupt records that the attempt was cut short, by a crash or in order.
func (p *Pool) interrupt(ctx context.Context, a *Attempt, reason string, crash bool) {
	err := a.retry(ctx, "re-arm the job", func(ctx context.Context) error {
		_, err := p.cfg.Queue.InterruptJob(ctx, a.Job.ID, a.Job.Attempt.Token, reason, crash)
		return err
	})
	p.close(a, "re-arm the job", err)
}

// close removes the attempt's raw files and work directory once the ledger has
// its end. The raw files are kept where they are the evidence of what an apply
// may have made. A ledger that could not be written is asked again by the next
// daemon.
func (p *Pool) close(a *Attempt, what string, err error) {
	if err != nil {
		a.slog.Error(what, "err", err)
		if orchestrator.CodeOf(err) != orchestrator.CodeConflict {
			return
		}
	}
	if !a.evidence {
		if err := dropRaw(a.ControlDir); err != nil {
			a.slog.Error("remove what the tools printed", "err", err)
		}
	}
	// Last: what it says of an attempt to removeStale is that this was not done.
	if err := durable.RemoveTree(a.WorkDir); err != nil {
		a.slog.Error("remove the work directory", "err", err)
	}
}

// recover takes up the jobs that an earlier daemon left running, and removes
// what is left of others. Where a supervised tool was begun, or that daemon
// ended in order, the handler is called again for the same attempt; so it is for
// a standalone job, whose attempt is its only one. A step of which a daemon that
// crashed had begun no tool is re-armed.
func (p *Pool) recover(ctx context.Context) error {
	running, err := p.cfg.Queue.RunningJobs(ctx)
	if err != nil {
		return err
	}
	mine := map[string]bool{}
	for _, job := range running {
		mine[string(job.Attempt.ID)] = true
	}
	if err := p.removeStale(mine); err != nil {
		p.cfg.Logger.Error("remove work directories of jobs that ended", "err", err)
	}
	for _, job := range running {
		if job.Phase != "" || p.cfg.CleanStop {
			p.start(ctx, job)
			continue
		}
		a := newAttempt(p.cfg, job, ctx.Done())
		if err := a.sweep(); err != nil {
			a.slog.Error("end what the job left", "err", err)
		}
		if job.Kind != orchestrator.JobStep && a.mayBeginAgain() {
			p.start(ctx, job)
			continue
		}
		p.interrupt(ctx, a, "the daemon ended while it did the work itself", true)
	}
	return nil
}

// beganAgainFile counts, in an attempt's control directory, how often it was
// begun again after a crash of the daemon that had begun no tool of it.
const beganAgainFile = "begun-again"

// mayBeginAgain counts one more beginning of a standalone job's attempt, durably,
// and reports whether it is within the bound of a step: a job that ends every
// daemon must end too. Where it cannot be counted, it is not begun.
func (a *Attempt) mayBeginAgain() bool {
	path := filepath.Join(a.ControlDir, beganAgainFile)
	var n int
	if err := readJSON(path, &n); err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.slog.Error("count how often the job was begun again", "err", err)
		return false
	}
	if n++; n >= orchestrator.MaxCrashes {
		return false
	}
	doc, err := json.Marshal(n)
	if err == nil {
		err = durable.Mkdir(a.ControlDir)
	}
	if err == nil {
		err = durable.WriteFile(path, doc, durable.PrivateFile)
	}
	if err != nil {
		a.slog.Error("count how often the job was begun again", "err", err)
	}
	return err == nil
}

// removeStale removes the raw files and work directories of attempts that are not
// live: an earlier daemon ended between recording an end and cleaning up.
func (p *Pool) removeStale(live map[string]bool) error {
	entries, err := os.ReadDir(workRoot(p.cfg.RuntimeDir))
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if live[e.Name()] {
			continue
		}
		if err := dropRaw(filepath.Join(controlRoot(p.cfg.DataDir), e.Name())); err != nil {
			errs = append(errs, fmt.Errorf("remove what tools printed: %w", err))
		}
		if err := durable.RemoveTree(workDir(p.cfg.RuntimeDir, orchestrator.AttemptID(e.Name()))); err != nil {
			errs = append(errs, fmt.Errorf("remove work directory: %w", err))
		}
	}
	return errors.Join(errs...)
}
