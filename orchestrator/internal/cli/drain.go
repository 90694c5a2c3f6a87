package cli

import (
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/spf13/cobra"
)

func (a *app) drainCommand() *cobra.Command {
	var off bool
	c := &cobra.Command{
		Use:   "drain",
		Short: "Cancel what runs, gracefully, and start nothing new; wait until all has ended",
		Long: `Stop taking work: running jobs are cancelled gracefully (tofu saves its state),
queued ones wait. It returns when nothing runs any more. --off ends the drain.`,
	}
	c.Flags().BoolVar(&off, "off", false, "end a drain: queued work starts")
	c.RunE = func(c *cobra.Command, _ []string) error {
		ctx := c.Context()
		return a.with(ctx, func(cl *rpc.Client) error {
			st, err := cl.Drain(ctx, off)
			if err != nil {
				return err
			}
			if off {
				a.say("the drain has ended; %d job(s) are queued", st.Queued)
				return nil
			}
			a.say("draining: %d job(s) are running", st.Running)
			if st, err = cl.WaitDrained(ctx); err != nil {
				return waitEnded(ctx, err, "the drain", "exocomp drain")
			}
			a.say("drained: nothing runs, %d job(s) are queued; go on: exocomp drain --off", st.Queued)
			return nil
		})
	}
	return c
}
