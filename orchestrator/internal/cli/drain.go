package cli

import (
	"context"

	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/spf13/cobra"
)

func (a *app) drainCommand() *cobra.Command {
	var off bool
	c := &cobra.Command{
		Use:   "drain",
		Short: "End what runs in order and start nothing new; wait until all has ended",
		Long: `Stop taking work: running tools are ended in order (tofu saves its state), what
is queued waits. It returns when nothing runs any more. --off ends the drain.

A drain costs no run: a step that it cut short is run again after --off. Any
other job, such as a workspace apply, is interrupted: exocomp jobs redrive JOB.`,
	}
	c.Flags().BoolVar(&off, "off", false, "end a drain: queued work starts")
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		ctx := c.Context()
		return a.with(ctx, func(cl *rpc.Client) error {
			before, err := cl.GetStatus(ctx)
			if err != nil {
				return err
			}
			st, err := cl.Drain(ctx, off)
			if err != nil {
				return err
			}
			switch {
			case off && before.Draining:
				a.say("the drain has ended; %d job(s) are queued", st.Queued)
			case off:
				a.say("the daemon was not draining; %d job(s) are queued", st.Queued)
			}
			if off {
				return a.drained(st, *asJSON)
			}
			a.say("draining: %d job(s) are running", st.Running)
			if st, err = cl.WaitDrained(ctx); err != nil {
				return waitEnded(ctx, err, "the drain", "exocomp drain")
			}
			a.say("drained: nothing runs, %d job(s) are queued; go on: exocomp drain --off", st.Queued)
			return a.drained(st, *asJSON)
		})
	}
	return c
}

// drained prints how the daemon fares now, where JSON is asked for.
func (a *app) drained(st rpc.Status, asJSON bool) error {
	if !asJSON {
		return nil
	}
	return a.printJSON(st)
}

// drainNote says why work that waits does not begin, where that is a drain. Who
// may not ask for it, a reader say, is told nothing.
func drainNote(ctx context.Context, cl *rpc.Client, waits bool) string {
	if !waits || cl.Role() != rpc.RoleOperator {
		return ""
	}
	st, err := cl.GetStatus(ctx)
	if err != nil || !st.Draining {
		return ""
	}
	return "the daemon is draining: what is queued begins after: exocomp drain --off"
}
