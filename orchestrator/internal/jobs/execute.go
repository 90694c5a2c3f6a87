package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
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
		p.rearm(ctx, a, err.Error())
		return
	case err != nil:
		outcome = orchestrator.Fail(err, nil)
	}
	if !outcome.Succeeded() && ctx.Err() != nil {
		return // the shutdown may be why; whatever it was, the next daemon meets it too
	}
	p.record(ctx, a, outcome)
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

// watchCancel passes on a person's wish to end the job, until stop is called:
// also while the job's tools are waited for and its outcome is recorded.
func (p *Pool) watchCancel(ctx context.Context, a *Attempt, cancel context.CancelCauseFunc) (stop func()) {
	ctx, end := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for ctx.Err() == nil {
			changed := p.cfg.Queue.Changed()
			var again <-chan time.Time
			job, err := p.cfg.Queue.Job(ctx, a.Job.ID)
			switch {
			case err != nil && ctx.Err() == nil:
				a.slog.Warn("look whether the job is cancelled: trying again", "err", err)
				again = time.After(claimRetry)
			case err == nil && job.CancelForce:
				a.asked.Store(true)
				cancel(ErrForced)
				a.force()
				return
			case err == nil && job.CancelRequested:
				a.asked.Store(true)
				cancel(ErrCancelled)
			}
			select {
			case <-ctx.Done():
			case <-changed:
			case <-again:
			}
		}
	}()
	return func() {
		end()
		<-watched
	}
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
	p.close(a, "record the outcome", err)
}

// rearm records that a crash cut the attempt short.
func (p *Pool) rearm(ctx context.Context, a *Attempt, reason string) {
	err := a.retry(ctx, "re-arm the job", func(ctx context.Context) error {
		_, err := p.cfg.Queue.InterruptJob(ctx, a.Job.ID, a.Job.Attempt.Token, reason, true)
		return err
	})
	p.close(a, "re-arm the job", err)
}

// close removes the attempt's work directory once the ledger has its end. A
// ledger that could not be written is asked again by the next daemon.
func (p *Pool) close(a *Attempt, what string, err error) {
	if err != nil {
		a.slog.Error(what, "err", err)
		if orchestrator.CodeOf(err) != orchestrator.CodeConflict {
			return
		}
	}
	if err := durable.RemoveTree(a.WorkDir); err != nil {
		a.slog.Error("remove the work directory", "err", err)
	}
}

// recover takes up the jobs that an earlier daemon left running, and removes
// what is left of others. Where a supervised tool was begun, or that daemon
// ended in order, the handler is called again for the same attempt; work of a
// daemon that crashed is re-armed.
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
		p.rearm(ctx, a, "the daemon ended while it did the work itself")
	}
	return nil
}

// removeStale removes the work directories of attempts that are not live: an
// earlier daemon ended between recording an end and cleaning up.
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
		if err := durable.RemoveTree(workDir(p.cfg.RuntimeDir, orchestrator.AttemptID(e.Name()))); err != nil {
			errs = append(errs, fmt.Errorf("remove work directory: %w", err))
		}
	}
	return errors.Join(errs...)
}
