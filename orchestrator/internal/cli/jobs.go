package cli

import (
	"context"
	"slices"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/spf13/cobra"
)

func (a *app) jobsCommand() *cobra.Command {
	return group("jobs", "The queue: every attempt of a step, and standalone work",
		a.jobsList(), a.jobsShow(), a.jobsLogs(), a.jobsCancel(), a.jobsRedrive())
}

func (a *app) jobsList() *cobra.Command {
	var filter orchestrator.JobFilter
	var state string
	c := &cobra.Command{Use: "list", Short: "List jobs, the newest first"}
	c.Flags().StringVar(&filter.Workspace, "workspace", "", "only jobs of this `workspace`")
	c.Flags().StringVar(&state, "state", "", "only jobs in this `state` (queued, running, succeeded, failed, cancelled, interrupted)")
	limitFlag(c, &filter.Limit, 20, "at most `n`; 0: all")
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		filter.State = orchestrator.JobState(state)
		if state != "" && !slices.Contains(orchestrator.JobStates, filter.State) {
			return orchestrator.Errorf(orchestrator.CodeInvalid, "there is no job state %q", state).
				WithHint("use queued, running, succeeded, failed, cancelled or interrupted")
		}
		return a.with(c.Context(), func(cl *rpc.Client) error {
			jobs, err := cl.ListJobs(c.Context(), filter)
			if err == nil && len(jobs) == 0 {
				err = known(c.Context(), cl, filter.Workspace)
			}
			if err != nil {
				return err
			}
			if *asJSON {
				return a.printJSON(list(jobs))
			}
			rows := make([][]string, 0, len(jobs))
			for _, j := range jobs {
				rows = append(rows, []string{string(j.ID), j.Workspace, what(j), string(j.State), instant(j.CreatedAt), span(j.StartedAt, j.FinishedAt), orDash(string(j.Run))})
			}
			a.tell(drainNote(c.Context(), cl, slices.ContainsFunc(jobs, func(j orchestrator.Job) bool { return j.State == orchestrator.JobQueued })))
			return a.table([]string{"JOB", "WORKSPACE", "WHAT", "STATE", "SUBMITTED", "TOOK", "RUN"}, rows, "no jobs")
		})
	}
	return c
}

func (a *app) jobsShow() *cobra.Command {
	c := &cobra.Command{Use: "show JOB", Short: "Show a job and how it ended"}
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		id, err := orchestrator.ParseJobID(args[0])
		if err != nil {
			return err
		}
		return a.with(c.Context(), func(cl *rpc.Client) error {
			j, err := cl.GetJob(c.Context(), id)
			if err != nil {
				return err
			}
			if *asJSON {
				return a.printJSON(j)
			}
			printJob(a.Out, j)
			return nil
		})
	}
	return c
}

func (a *app) jobsLogs() *cobra.Command {
	var follow bool
	c := &cobra.Command{Use: "logs JOB", Short: "Print a job's log, secrets redacted"}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the job ends")
	c.RunE = func(c *cobra.Command, args []string) error {
		id, err := orchestrator.ParseJobID(args[0])
		if err != nil {
			return err
		}
		return a.with(c.Context(), func(cl *rpc.Client) error {
			err := a.jobLog(c.Context(), cl, id, follow)
			return waitEnded(c.Context(), err, "job "+string(id), "exocomp jobs logs -f "+string(id))
		})
	}
	return c
}

func (a *app) jobsCancel() *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use:   "cancel JOB",
		Short: "End a job; tofu is asked to stop and saves its state",
	}
	c.Flags().BoolVar(&force, "force", false, "kill the tool at once: what tofu has created may be missing in its state")
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		id, err := orchestrator.ParseJobID(args[0])
		if err != nil {
			return err
		}
		return a.with(c.Context(), func(cl *rpc.Client) error {
			j, err := cl.CancelJob(c.Context(), id, force)
			if err != nil {
				return err
			}
			if *asJSON {
				if err := a.printJSON(j); err != nil {
					return err
				}
			}
			if j.State.Final() {
				a.say("job %s is %s", j.ID, j.State)
			} else {
				a.say("job %s is ending; look: exocomp jobs show %s", j.ID, j.ID)
			}
			return nil
		})
	}
	return c
}

func (a *app) jobsRedrive() *cobra.Command {
	c := &cobra.Command{
		Use:   "redrive JOB",
		Short: "Run a standalone job again that a crash interrupted",
	}
	wait := waitFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		id, err := orchestrator.ParseJobID(args[0])
		if err != nil {
			return err
		}
		return a.submitJob(c.Context(), wait, func(ctx context.Context, cl *rpc.Client) (orchestrator.Job, error) {
			return cl.RedriveJob(ctx, id)
		})
	}
	return c
}
