package cli

import (
	"github.com/exocomp/exocomp/orchestrator"
	"github.com/spf13/cobra"
)

func (a *app) handoffCommand() *cobra.Command {
	return group("handoff", "The short chain, for hosts that need no onboarding: tofu apply, play",
		a.handoffRun(), a.runStatus())
}

func (a *app) handoffRun() *cobra.Command {
	var f chainFlags
	c := &cobra.Command{
		Use:   "run WORKSPACE PLAYBOOK [-- ARGS]",
		Short: "Apply the workspace and run the playbook as the inventory's own user",
		Long: `Submit one chain of two steps: tofu apply, and the playbook against what it made.
Nobody is waited for and nobody is onboarded: the play logs in as the inventory
says, with the fleet key or --ssh-identity. Before it, every host key is pinned,
or held against its pin.

It is a run like a provision: look at it with handoff status or provision status;
continue, end and follow it with provision resume, cancel and logs.

What stands behind -- is passed to ansible-playbook, as with provision run.`,
		Example: "  exocomp handoff run edge site.yml --wait\n  exocomp handoff run edge site.yml --ssh-identity ~/.ssh/id_ed25519 -- --check",
	}
	f.addShort(c)
	wait := waitFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.submitRun(c.Context(), orchestrator.RunHandoff, &f, args, wait)
	}
	return c
}
