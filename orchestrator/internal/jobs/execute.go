package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/fault"
)

// execute runs one claimed or recovered job to its end, or until ctx ends.
func (p *Pool) execute(ctx context.Context, job orchestrator.Job) {
	a := newAttempt(p.cfg, job, ctx.Done())
	var outcome orchestrator.Outcome
	err := a.prepare()
	if err == nil {
		outcome, err = p.handle(ctx, a)
	}
	switch {
	case err != nil && ctx.Err() != nil, errors.Is(err, ErrShutdown):
		return // the job stays as it is
	case errors.Is(err, ErrLost):
		if p.settle(a) {
			p.rearm(ctx, a, err.Error(), true)
		}
		return
	case err != nil:
		outcome = orchestrator.Fail(err, nil)
	}
	if p.settle(a) {
		p.record(ctx, a, outcome)
	}
}

// handle calls the handler with a context that ends, with its cause, when the
// daemon goes or a person cancels the job.
func (p *Pool) handle(ctx context.Context, a *Attempt) (outcome orchestrator.Outcome, err error) {
	jobCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(ErrShutdown) })()

	watchCtx, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		p.watchCancel(watchCtx, a, cancel)
	}()
	defer func() {
		stop()
		<-watched
		if r := recover(); r != nil {
			a.slog.Error("a handler panicked", "panic", r, "stack", string(debug.Stack()))
			outcome, err = orchestrator.Outcome{}, orchestrator.Errorf(orchestrator.CodeInternal, "the %s handler panicked: %v", a.kind(), r)
		}
		if errors.Is(err, context.Canceled) && jobCtx.Err() != nil {
			err = context.Cause(jobCtx) // a handler that passed on what a library said
		}
	}()
	return p.cfg.Handler.Handle(jobCtx, a)
}

// watchCancel passes on a person's wish to end the job.
func (p *Pool) watchCancel(ctx context.Context, a *Attempt, cancel context.CancelCauseFunc) {
	for {
		changed := p.cfg.Queue.Changed()
		job, err := p.cfg.Queue.Job(ctx, a.Job.ID)
		switch {
		case err != nil && ctx.Err() == nil:
			a.slog.Warn("look whether the job is cancelled", "err", err)
		case err == nil && job.CancelForce:
			cancel(ErrForced)
			a.force()
			return
		case err == nil && job.CancelRequested:
			cancel(ErrCancelled)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// settle makes sure that nothing of the attempt runs any more. It reports
// false where the daemon goes before that: then the job stays as it is.
func (p *Pool) settle(a *Attempt) bool {
	if err := a.settle(); err != nil {
		if errors.Is(err, ErrShutdown) {
			return false
		}
		a.slog.Error("wait for the job's supervisors", "err", err)
	}
	if err := a.sweep(); err != nil {
		a.slog.Error("end what the job left", "err", err)
	}
	return true
}

// record makes the outcome durable. An attempt that is not the live one any
// more has nothing to say.
func (p *Pool) record(ctx context.Context, a *Attempt, o orchestrator.Outcome) {
	err := a.retry(ctx, "record the outcome", func(ctx context.Context) error {
		_, err := p.cfg.Queue.FinishJob(ctx, a.Job.ID, a.Job.Attempt.Token, o)
		return err
	})
	if err == nil {
		fault.Point(fault.AfterRelease, a.kind())
	}
	p.close(a, "record the outcome", err)
}

// rearm records that the attempt was cut short.
func (p *Pool) rearm(ctx context.Context, a *Attempt, reason string, crash bool) {
	err := a.retry(ctx, "re-arm the job", func(ctx context.Context) error {
		_, err := p.cfg.Queue.InterruptJob(ctx, a.Job.ID, a.Job.Attempt.Token, reason, crash)
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
	if err := os.RemoveAll(a.WorkDir); err != nil {
		a.slog.Error("remove the work directory", "err", err)
	}
}

// recover takes up the jobs that an earlier daemon left running, and removes
// what is left of others. Where a supervised tool was begun the handler is
// called again; work of the daemon itself is re-armed.
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
		if job.Phase != "" {
			p.start(ctx, job)
			continue
		}
		a := newAttempt(p.cfg, job, ctx.Done())
		if err := a.sweep(); err != nil {
			a.slog.Error("end what the job left", "err", err)
		}
		p.rearm(ctx, a, "the daemon ended while it did the work itself", !p.cfg.CleanStop)
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
		if err := os.RemoveAll(workDir(p.cfg.RuntimeDir, orchestrator.AttemptID(e.Name()))); err != nil {
			errs = append(errs, fmt.Errorf("remove work directory: %w", err))
		}
	}
	return errors.Join(errs...)
}
