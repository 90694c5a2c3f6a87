package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/spf13/cobra"
)

// waiting is how a command that submits ends: --wait; --wait-timeout, which waits
// by itself; --json.
type waiting struct {
	on      bool
	timeout time.Duration
	json    bool // print what was submitted, or has ended, as JSON
}

func waitFlags(c *cobra.Command) *waiting {
	w := &waiting{}
	c.Flags().BoolVar(&w.on, "wait", false, "wait for the end, showing progress; exit 1 if the work failed")
	c.Flags().DurationVar(&w.timeout, "wait-timeout", 0, "wait, but no longer than this `duration` (exit 124; the work goes on)")
	c.Flags().BoolVar(&w.json, "json", false, "print JSON: what was submitted, with --wait how it has ended")
	pre := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		if w.timeout < 0 {
			return orchestrator.Errorf(orchestrator.CodeInvalid, "--wait-timeout %s is negative", w.timeout)
		}
		if w.timeout > 0 {
			w.on = true
		}
		if pre != nil {
			return pre(c, args)
		}
		return nil
	}
	return w
}

// bounded returns ctx that ends after timeout, where there is one.
func bounded(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}

// waitEnded turns the end of a wait into what the person should know: the work
// goes on without the one who watches.
func waitEnded(ctx context.Context, err error, what, follow string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded), orchestrator.CodeOf(err) == orchestrator.CodeTimeout:
		// the daemon, which knows the deadline too, may be the first to notice
		return &exitError{exitTimeout, orchestrator.Errorf(orchestrator.CodeTimeout, "--wait-timeout passed; %s goes on", what).WithHint("%s", follow)}
	case ctx.Err() != nil:
		return &exitError{exitInterrupted, orchestrator.Errorf(orchestrator.CodeCancelled, "interrupted; %s goes on", what).WithHint("%s", follow)}
	default:
		return err
	}
}

// errDone ends a watch that has seen what it waited for.
var errDone = errors.New("done")

// followRun shows a run's progress until it ends, then its steps.
func (a *app) followRun(ctx context.Context, cl *rpc.Client, run orchestrator.Run, wait *waiting) error {
	final, err := a.awaitRun(ctx, cl, run, wait.timeout)
	if err != nil {
		return err
	}
	if wait.json {
		if err := a.printJSON(final); err != nil {
			return err
		}
	} else {
		printRun(a.Out, final)
	}
	if failed := final.FailedStep(); failed != nil {
		return &exitError{code: workCode(failed.Failure)}
	}
	return nil
}

// awaitRun shows a run's progress and returns it in its final state. It starts
// at the run's newest submit or resume, so that a resumed run does not show its
// old failure again.
func (a *app) awaitRun(ctx context.Context, cl *rpc.Client, run orchestrator.Run, timeout time.Duration) (orchestrator.Run, error) {
	wctx, cancel := bounded(ctx, timeout)
	defer cancel()
	p := a.newProgress()
	defer p.close()
	p.line("run %s of workspace %s", run.ID, run.Workspace)
	if note := drainNote(wctx, cl, waits(run)); note != "" {
		p.line("%s", note)
	}
	after, err := newestStart(wctx, cl, run.ID)
	if err == nil {
		err = cl.Watch(wctx, orchestrator.EventFilter{Run: run.ID, After: after}, func(e orchestrator.Event) error {
			p.event(e)
			if e.Kind == orchestrator.EventRunFinished {
				return errDone
			}
			return nil
		})
	}
	if err != nil && !errors.Is(err, errDone) {
		return run, waitEnded(wctx, err, "run "+string(run.ID), "exocomp provision logs -f "+string(run.ID))
	}
	return cl.Wait(ctx, run.ID) // it is final, but the daemon may be away
}

// newestStart returns the id of the event before which nothing of the run's
// present execution lies.
func newestStart(ctx context.Context, cl *rpc.Client, id orchestrator.RunID) (int64, error) {
	events, err := cl.ListEvents(ctx, orchestrator.EventFilter{Run: id})
	if err != nil {
		return 0, err
	}
	var after int64
	for _, e := range events {
		if e.Kind == orchestrator.EventRunSubmitted || e.Kind == orchestrator.EventRunResumed {
			after = e.ID
		}
	}
	return after, nil
}

// submitJob submits a standalone job and, if asked to, follows it.
func (a *app) submitJob(ctx context.Context, wait *waiting, submit func(context.Context, *rpc.Client) (orchestrator.Job, error)) error {
	return a.with(ctx, func(cl *rpc.Client) error {
		job, err := submit(ctx, cl)
		if err != nil {
			return err
		}
		if !wait.on {
			if wait.json {
				if err := a.printJSON(job); err != nil {
					return err
				}
			} else {
				_, _ = fmt.Fprintln(a.Out, job.ID)
			}
			a.say("submitted job %s (%s) of workspace %s", job.ID, what(job), job.Workspace)
			a.tell(drainNote(ctx, cl, job.State == orchestrator.JobQueued))
			a.say("follow it: exocomp jobs logs -f %s; or look: exocomp jobs show %s", job.ID, job.ID)
			return nil
		}
		return a.followJob(ctx, cl, job, wait)
	})
}

// followJob shows a job's progress until it ends, then its report.
func (a *app) followJob(ctx context.Context, cl *rpc.Client, job orchestrator.Job, wait *waiting) error {
	wctx, cancel := bounded(ctx, wait.timeout)
	defer cancel()
	p := a.newProgress()
	defer p.close()
	p.line("job %s (%s) of workspace %s", job.ID, what(job), job.Workspace)
	if note := drainNote(wctx, cl, job.State == orchestrator.JobQueued); note != "" {
		p.line("%s", note)
	}
	err := cl.Watch(wctx, orchestrator.EventFilter{Job: job.ID}, func(e orchestrator.Event) error {
		p.event(e)
		if e.Kind == orchestrator.EventJobFinished || e.Kind == orchestrator.EventJobInterrupted {
			return errDone
		}
		return nil
	})
	if err != nil && !errors.Is(err, errDone) {
		return waitEnded(wctx, err, "job "+string(job.ID), "exocomp jobs logs -f "+string(job.ID))
	}
	p.close()
	final, err := cl.WaitJob(ctx, job.ID) // it is final, but the daemon may be away
	if err != nil {
		return err
	}
	if wait.json {
		if err := a.printJSON(final); err != nil {
			return err
		}
	} else {
		printJob(a.Out, final)
	}
	if final.State != orchestrator.JobSucceeded {
		return &exitError{code: max(workCode(final.Failure), exitFailed)}
	}
	return nil
}
