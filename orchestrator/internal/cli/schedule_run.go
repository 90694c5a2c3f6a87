package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/spf13/cobra"
)

func (a *app) scheduleRunNow() *cobra.Command {
	c := &cobra.Command{
		Use:   "run-now NAME",
		Short: "Fire a schedule now, paused or not",
		Long: `Fire a schedule now, by the same rules as at its instants: it waits for a fire of
its keys that goes on, it is skipped while a chain of the workspace is active, and
refused where there is nothing to play against (exit 4).`,
	}
	wait := waitFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		ctx := c.Context()
		return a.with(ctx, func(cl *rpc.Client) error {
			f, err := cl.RunSchedule(ctx, "", args[0])
			if err == nil && wait.on {
				f, err = a.awaitFire(ctx, cl, f, wait)
			}
			if err != nil {
				return err
			}
			if f.Job != "" && wait.on {
				job, err := cl.GetJob(ctx, f.Job)
				if err != nil {
					return err
				}
				return a.followJob(ctx, cl, job, wait)
			}
			if wait.json {
				if err := a.printJSON(f); err != nil {
					return err
				}
			}
			return a.fired(f, wait)
		})
	}
	return c
}

// fired says what became of a fire that a person asked for.
func (a *app) fired(f orchestrator.Fire, wait *waiting) error {
	switch f.State {
	case orchestrator.FireStarted:
		if !wait.json {
			_, _ = a.Out.Write([]byte(string(f.Job) + "\n"))
		}
		a.say("schedule %s has started job %s", f.Schedule, f.Job)
		a.say("follow it: exocomp jobs logs -f %s; or look: exocomp jobs show %s", f.Job, f.Job)
		return nil
	case orchestrator.FireWaiting, orchestrator.FireCoalesced:
		a.say("%s: %s", f.State, f.Reason)
		a.say("look: exocomp schedule show %s", f.Schedule)
		return nil
	default:
		return orchestrator.Errorf(orchestrator.CodeRefused, "nothing was started: %s: %s", f.State, f.Reason)
	}
}

// awaitFire returns a fire that waits once it is decided; for one that was
// coalesced, the one that does the same.
func (a *app) awaitFire(ctx context.Context, cl *rpc.Client, f orchestrator.Fire, wait *waiting) (orchestrator.Fire, error) {
	if f.State != orchestrator.FireWaiting && f.State != orchestrator.FireCoalesced {
		return f, nil
	}
	a.say("%s: %s", f.State, f.Reason)
	wctx, cancel := bounded(ctx, wait.timeout)
	defer cancel()
	if err := a.freshFire(wctx, cl, &f); err != nil {
		return f, err
	}
	// From the first event on: what was decided in between is seen, too.
	err := cl.Watch(wctx, orchestrator.EventFilter{Workspace: f.Workspace}, func(e orchestrator.Event) error {
		if !strings.HasPrefix(string(e.Kind), "fire.") || e.At.Before(f.RecordedAt) {
			return nil
		}
		if err := a.freshFire(wctx, cl, &f); err != nil || f.State == orchestrator.FireWaiting {
			return err
		}
		return errDone
	})
	if err != nil && !errors.Is(err, errDone) {
		return f, waitEnded(wctx, err, "schedule "+f.Schedule, "exocomp schedule show "+f.Schedule)
	}
	return f, nil
}

// freshFire reads a fire anew; one that was coalesced becomes the one that waits
// or, where none does any more, the newest that was not coalesced.
func (a *app) freshFire(ctx context.Context, cl *rpc.Client, f *orchestrator.Fire) (err error) {
	if f.State != orchestrator.FireCoalesced {
		*f, err = cl.GetFire(ctx, f.ID)
		return err
	}
	v, err := cl.GetSchedule(ctx, f.Schedule, 0)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(v.Fires, func(o orchestrator.Fire) bool {
		return o.ID < f.ID && o.State != orchestrator.FireCoalesced
	})
	if i < 0 {
		return orchestrator.Errorf(orchestrator.CodeNotFound, "the fire of schedule %s is not on record any more", f.Schedule)
	}
	*f = v.Fires[i]
	return nil
}
