package cli

import (
	"fmt"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/spf13/cobra"
)

func (a *app) eventsCommand() *cobra.Command {
	var filter orchestrator.EventFilter
	var run string
	var follow bool
	c := &cobra.Command{Use: "events", Short: "Print the history, the oldest first"}
	f := c.Flags()
	f.StringVar(&filter.Workspace, "workspace", "", "only events of this `workspace`")
	f.StringVar(&run, "run", "", "only events of this `run`, or of the newest one of this workspace")
	f.Int64Var(&filter.After, "after", 0, "only events after this `id`")
	f.BoolVar(&filter.Security, "security", false, "only security events")
	limitFlag(c, &filter.Newest, 0, "only the newest `n`; 0: all")
	f.BoolVarP(&follow, "follow", "f", false, "go on as they come")
	asJSON := c.Flags().Bool("json", false, "print JSON, an object a line")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return a.with(c.Context(), func(cl *rpc.Client) error {
			if run != "" {
				r, err := cl.GetRun(c.Context(), run)
				if err != nil {
					return err
				}
				filter.Run = r.ID
			}
			events, err := cl.ListEvents(c.Context(), filter)
			if err == nil && len(events) == 0 {
				err = known(c.Context(), cl, filter.Workspace)
			}
			if err != nil {
				return err
			}
			if len(events) == 0 && !follow {
				a.say("no such events")
			}
			for _, e := range events {
				if err := a.printEvent(e, *asJSON); err != nil {
					return err
				}
				filter.After = e.ID
			}
			if !follow {
				return nil
			}
			show := func(e orchestrator.Event) error { return a.printEvent(e, *asJSON) }
			return waitEnded(c.Context(), cl.Watch(c.Context(), filter, show), "the daemon", "exocomp events -f")
		})
	}
	return c
}

func (a *app) printEvent(e orchestrator.Event, asJSON bool) error {
	if asJSON {
		return a.printLine(e)
	}
	whose := string(e.Run)
	if whose == "" {
		whose = string(e.Job)
	}
	_, err := fmt.Fprintln(a.Out, printable(fmt.Sprintf("%d  %s  %-22s %-12s %-30s %s%s",
		e.ID, instant(e.At), e.Kind, orDash(e.Workspace), orDash(whose), mark(e), e.Message)))
	return err
}
