package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/spf13/cobra"
)

func (a *app) provisionLogs() *cobra.Command {
	var follow bool
	c := &cobra.Command{
		Use:   "logs RUN|WORKSPACE",
		Short: "Print the logs of a run's attempts, in order",
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the run ends")
	c.RunE = func(c *cobra.Command, args []string) error {
		ctx := c.Context()
		return a.with(ctx, func(cl *rpc.Client) error {
			run, err := cl.GetRun(ctx, args[0])
			if err != nil {
				return err
			}
			err = a.runLogs(ctx, cl, run.ID, follow)
			return waitEnded(ctx, err, "run "+string(run.ID), "exocomp provision logs -f "+string(run.ID))
		})
	}
	return c
}

// runLogs prints the logs of a run's jobs one after the other; each job's log
// ends with the job, so following them in order follows the run.
func (a *app) runLogs(ctx context.Context, cl *rpc.Client, id orchestrator.RunID, follow bool) error {
	printed := map[orchestrator.JobID]bool{}
	for {
		run, err := cl.GetRun(ctx, string(id))
		if err != nil {
			return err
		}
		jobs, err := cl.ListJobs(ctx, orchestrator.JobFilter{Run: id})
		if err != nil {
			return err
		}
		slices.Reverse(jobs) // the oldest first
		news := false
		for _, j := range jobs {
			if printed[j.ID] || j.StartedAt.IsZero() {
				continue
			}
			printed[j.ID], news = true, true
			a.say("── step %d %s, attempt %d (%s)", j.Step, j.StepKind, j.Attempt.Number, j.ID)
			if err := a.jobLog(ctx, cl, j.ID, follow); err != nil {
				return err
			}
		}
		if !follow || run.State.Final() && !news {
			return nil
		}
		if !news {
			if err := awaitNextJob(ctx, cl, id, printed); err != nil {
				return err
			}
		}
	}
}

// awaitNextJob returns when a job of the run starts that is not printed yet, or
// the run has ended.
func awaitNextJob(ctx context.Context, cl *rpc.Client, id orchestrator.RunID, printed map[orchestrator.JobID]bool) error {
	err := cl.Watch(ctx, orchestrator.EventFilter{Run: id}, func(e orchestrator.Event) error {
		switch e.Kind {
		case orchestrator.EventJobStarted, orchestrator.EventStepStarted:
			if e.Job != "" && !printed[e.Job] {
				return errDone
			}
		case orchestrator.EventRunFinished:
			run, err := cl.GetRun(ctx, string(id))
			if err != nil {
				return err
			}
			if run.State.Final() {
				return errDone
			}
		}
		return nil
	})
	if errors.Is(err, errDone) {
		return nil
	}
	return err
}

// jobLog prints a job's log. What hosts and tasks have said is only text in it.
func (a *app) jobLog(ctx context.Context, cl *rpc.Client, id orchestrator.JobID, follow bool) error {
	w := &printableWriter{w: a.Out}
	err := cl.FollowLog(ctx, rpc.LogRequest{Job: id, Follow: follow}, w)
	return errors.Join(err, w.Close())
}
