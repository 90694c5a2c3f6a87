package cli

import (
	"context"
	"slices"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/playbook"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (a *app) playbookCommand() *cobra.Command {
	return group("playbook", "Playbooks against a standing inventory, outside any chain", a.playbookRun(), a.playbookVendor())
}

func (a *app) playbookRun() *cobra.Command {
	var inventory string
	var identities []string
	spec := orchestrator.JobSpec{}
	c := &cobra.Command{
		Use:   "run PLAYBOOK [-- ARGS]",
		Short: "Run a playbook against a standing inventory",
		Long: `Run a playbook against the hosts that tf:WORKSPACE names now, as one job in the
turn of that workspace. The playbook and its roles are snapshotted now, so later
edits do not change this run.

Hosts that are not admitted yet are admitted first, inside the job and with the
settings of the workspace's newest succeeded chain: waited for, pinned, onboarded.
Where one cannot be, nothing is played, unless --keep-going leaves it out; the job
then fails in the end and names it. With -- --check nothing is admitted.

What stands behind -- is passed to ansible-playbook: --check, --diff, --limit,
--tags, --skip-tags, --start-at-task, -e, -f, -v. A file in it (-e @vars.yml) is
one of the snapshot, named from the playbook's directory.`,
		Example: "  exocomp playbook run site.yml --inventory tf:edge --wait\n  exocomp playbook run site.yml --inventory tf:edge --wait -- --check --limit web1",
	}
	fl := c.Flags()
	fl.StringVar(&inventory, "inventory", "", "the standing `inventory`, tf:WORKSPACE; required")
	playFlags(fl, &spec.Egress, &identities, &spec.NoAdmit, &spec.KeepGoing)
	wait := waitFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := playbookMistakes(inventory, args[0]); err != nil {
			return err
		}
		for i := range identities {
			if err := absolute(&identities[i]); err != nil {
				return err
			}
		}
		spec.Args = args[1:]
		return a.submitJob(c.Context(), wait, func(ctx context.Context, cl *rpc.Client) (orchestrator.Job, error) {
			ref, err := cl.UploadPlaybook(ctx, args[0])
			if err != nil {
				return orchestrator.Job{}, err
			}
			spec.Play = &orchestrator.PlaySpec{Playbook: ref, SSHIdentities: identities}
			if err := spec.ValidatePlaybookRun(); err != nil {
				return orchestrator.Job{}, err
			}
			return cl.SubmitPlaybook(ctx, "", inventory, spec)
		})
	}
	return c
}

// playFlags declares the flags of a play outside a chain, now or by schedule.
func playFlags(f *pflag.FlagSet, egress *[]int, identities *[]string, noAdmit, keepGoing *bool) {
	f.IntSliceVar(egress, "egress", nil, "TCP `port` that the play needs besides 22, recorded with the job; may be repeated")
	f.StringArrayVar(identities, "ssh-identity", nil, "private key `file` on the daemon's host to log in with; may be repeated")
	f.BoolVar(noAdmit, "no-admit", false, "admit no host: fail naming those that are not admitted")
	f.BoolVar(keepGoing, "keep-going", false, "play against the other hosts where one cannot be admitted")
}

// playbookMistakes reports together what is wrong before a daemon is asked.
func playbookMistakes(inventory, play string) error {
	var m orchestrator.Mistakes
	if inventory == "" {
		m.Addf("--inventory is missing: name a standing inventory, tf:WORKSPACE")
	} else {
		m.Add(orchestrator.ValidateInventoryName(inventory))
	}
	_, _, err := playbook.Root(play)
	m.Add(err)
	return m.Err()
}

func (a *app) playbookVendor() *cobra.Command {
	var requirements string
	c := &cobra.Command{
		Use:   "vendor",
		Short: "Install collections and roles for every later play",
		Long: `Install the collections and roles of a requirements file in the daemon's data
directory, in place of those that were vendored before. Every later play finds
them, without a network. The file is read here and travels with its tree, so that
it may name archives that lie beside it; a file:// URL is one on the daemon's host.`,
		Example: "  exocomp playbook vendor --requirements requirements.yml",
	}
	c.Flags().StringVar(&requirements, "requirements", "", "the requirements `file` of ansible-galaxy; required")
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if requirements == "" {
			return orchestrator.Errorf(orchestrator.CodeInvalid, "--requirements is missing: name a requirements file of ansible-galaxy")
		}
		return a.with(c.Context(), func(cl *rpc.Client) error {
			ref, err := cl.UploadPlaybook(c.Context(), requirements)
			if err != nil {
				return err
			}
			v, err := cl.VendorRequirements(c.Context(), ref)
			if err != nil {
				return err
			}
			v.Collections, v.Roles = list(v.Collections), list(v.Roles)
			if *asJSON {
				return a.printJSON(v)
			}
			for _, name := range slices.Concat(v.Collections, v.Roles) {
				a.say("vendored %s", name)
			}
			return nil
		})
	}
	return c
}
