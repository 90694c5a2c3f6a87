package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/playbook"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/spf13/cobra"
)

func (a *app) provisionCommand() *cobra.Command {
	return group("provision", "The chain: tofu apply, SSH wait, onboard, configure play",
		a.provisionRun(), a.runStatus(), a.provisionList(),
		a.provisionResume(), a.provisionCancel(), a.provisionLogs())
}

// chainFlags are what runs of both kinds and resume have in common.
type chainFlags struct {
	sshWait    time.Duration
	onboard    string
	egress     []int
	identities []string
	acceptLost bool
}

// add adds the flags; sshWait is what holds where none is given, zero for what
// the run has.
func (f *chainFlags) add(c *cobra.Command, sshWait time.Duration) {
	fl := c.Flags()
	fl.DurationVar(&f.sshWait, "ssh-wait", sshWait, "`duration` that all hosts together may take until SSH answers")
	fl.StringVar(&f.onboard, "onboard-playbook", "", "onboard with this `playbook` instead of the seeded one; it gets exocomp_fleet_pubkey and exocomp_user")
	f.addShort(c)
}

// addShort adds those of a chain that neither waits nor onboards.
func (f *chainFlags) addShort(c *cobra.Command) {
	fl := c.Flags()
	fl.IntSliceVar(&f.egress, "egress", nil, "TCP `port` that the plays need besides 22, recorded with the run; may be repeated")
	fl.StringArrayVar(&f.identities, "ssh-identity", nil, "private key `file` on the daemon's host to log in with; may be repeated")
	fl.BoolVar(&f.acceptLost, "accept-lost", false, "go on although an interrupted apply may have created what the state lacks")
}

func (a *app) provisionRun() *cobra.Command {
	var f chainFlags
	c := &cobra.Command{
		Use:   "run WORKSPACE PLAYBOOK [-- ARGS]",
		Short: "Apply the workspace, wait for its hosts, onboard them, run the playbook",
		Long: `Submit one chain of four steps. Each releases the next only when it succeeded; a
crash repeats none that succeeded. The playbook and its roles are snapshotted
now, so later edits do not change this run.

What stands behind -- is passed to ansible-playbook in step 4: --check, --diff,
--limit, --tags, --skip-tags, --start-at-task, -e, -f, -v. A file in it (-e
@vars.yml) is one of the snapshot, named from the playbook's directory.`,
		Example: "  exocomp provision run edge site.yml --wait\n  exocomp provision run edge site.yml --wait -- --limit web1",
	}
	f.add(c, orchestrator.DefaultSSHWait)
	wait := waitFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.submitRun(c.Context(), orchestrator.RunProvision, &f, args, wait)
	}
	return c
}

// submitRun submits a chain: args are a workspace, a playbook and what is passed
// to ansible-playbook.
func (a *app) submitRun(ctx context.Context, kind orchestrator.RunKind, f *chainFlags, args []string, wait *waiting) error {
	if err := f.mistakes(args[0], args[1]); err != nil {
		return err
	}
	return a.with(ctx, func(cl *rpc.Client) error {
		spec := orchestrator.RunSpec{
			Args: args[2:], SSHWait: f.sshWait, Egress: f.egress, SSHIdentities: f.identities, AcceptLost: f.acceptLost,
		}
		if err := f.files(); err != nil {
			return err
		}
		ref, err := cl.UploadPlaybook(ctx, args[1])
		if err != nil {
			return err
		}
		spec.Playbook = ref
		if spec.OnboardPlaybook, err = a.again(ctx, cl, f.onboard, nil); err != nil {
			return err
		}
		if err := spec.Validate(kind); err != nil {
			return err
		}
		run, err := cl.SubmitRun(ctx, "", kind, args[0], spec)
		if err != nil {
			return err
		}
		return a.submitted(ctx, cl, run, wait)
	})
}

// mistakes reports together what is wrong before a daemon is asked.
func (f *chainFlags) mistakes(workspace, play string) error {
	var m orchestrator.Mistakes
	m.Add(orchestrator.ValidateWorkspaceName(workspace))
	_, _, err := playbook.Root(play)
	m.Add(err)
	if f.onboard != "" {
		_, _, err := playbook.Root(f.onboard)
		m.Add(err)
	}
	return m.Err()
}

// files makes the flags' paths absolute.
func (f *chainFlags) files() error {
	for i := range f.identities {
		if err := absolute(&f.identities[i]); err != nil {
			return err
		}
	}
	return nil
}

// submitted says what was submitted and, if asked to, follows it.
func (a *app) submitted(ctx context.Context, cl *rpc.Client, run orchestrator.Run, wait *waiting) error {
	if wait.on {
		return a.followRun(ctx, cl, run, wait)
	}
	if wait.json {
		if err := a.printJSON(run); err != nil {
			return err
		}
	} else {
		_, _ = fmt.Fprintln(a.Out, run.ID)
	}
	a.say("submitted run %s of workspace %s", run.ID, run.Workspace)
	a.tell(drainNote(ctx, cl, waits(run)))
	a.say("follow it: exocomp provision logs -f %s; or look: exocomp %s status %s", run.Workspace, run.Kind, run.Workspace)
	return nil
}

// runStatus is the ledger view of a run, whatever its kind.
func (a *app) runStatus() *cobra.Command {
	c := &cobra.Command{
		Use:   "status RUN|WORKSPACE",
		Short: "Show the steps of a run, or of a workspace's newest one",
	}
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.with(c.Context(), func(cl *rpc.Client) error {
			run, err := cl.GetRun(c.Context(), args[0])
			if err != nil {
				return err
			}
			if *asJSON {
				return a.printJSON(run)
			}
			printRun(a.Out, run)
			a.tell(drainNote(c.Context(), cl, waits(run)))
			a.tell(cancelNote(c.Context(), cl, run))
			return nil
		})
	}
	return c
}

func (a *app) provisionList() *cobra.Command {
	var filter orchestrator.RunFilter
	c := &cobra.Command{Use: "list", Short: "List runs of every kind, the newest first"}
	c.Flags().StringVar(&filter.Workspace, "workspace", "", "only runs of this `workspace`")
	limitFlag(c, &filter.Limit, 20, "at most `n`; 0: all")
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return a.with(c.Context(), func(cl *rpc.Client) error {
			runs, err := cl.ListRuns(c.Context(), filter)
			if err == nil && len(runs) == 0 {
				err = known(c.Context(), cl, filter.Workspace)
			}
			if err != nil {
				return err
			}
			if *asJSON {
				return a.printJSON(list(runs))
			}
			rows := make([][]string, 0, len(runs))
			for _, r := range runs {
				rows = append(rows, []string{string(r.ID), r.Workspace, string(r.Kind), string(r.State), orDash(at(r)), instant(r.CreatedAt), span(r.CreatedAt, r.FinishedAt)})
			}
			a.tell(drainNote(c.Context(), cl, slices.ContainsFunc(runs, waits)))
			return a.table([]string{"RUN", "WORKSPACE", "KIND", "STATE", "AT", "SUBMITTED", "TOOK"}, rows, "no runs; start one: exocomp provision run WORKSPACE PLAYBOOK")
		})
	}
	return c
}

func (a *app) provisionResume() *cobra.Command {
	var f chainFlags
	var play, from string
	var failedOnly bool
	c := &cobra.Command{
		Use:   "resume RUN|WORKSPACE [-- ARGS]",
		Short: "Continue a failed run, of either kind, at the step that failed",
		Long: `Continue a failed run at the step that failed; what succeeded is not run again.
The playbook is read anew from where it was, so correcting it is enough; where it
is not there, the run keeps the one that it has. Settings that are not given stay
as they are.

With --failed-only the step leaves out the hosts on which it did its work, as
ansible-playbook does with a retry file; the steps after it deal with all hosts.

With --from the run, which may also have succeeded or been cancelled, stays as it
is: a new one takes over what it did before that step and does the rest anew.`,
		Example: "  exocomp provision resume edge --wait\n  exocomp provision resume edge --failed-only\n  exocomp provision resume edge --from ansible-play",
	}
	f.add(c, 0)
	c.Flags().StringVar(&play, "playbook", "", "use this `playbook` from now on")
	c.Flags().StringVar(&from, "from", "", "begin a new run at this `step` (tofu-apply, ssh-wait, host-onboard, ansible-play)")
	c.Flags().BoolVar(&failedOnly, "failed-only", false, "only for the hosts that the failed step is not done with")
	wait := waitFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		ctx := c.Context()
		if from != "" && failedOnly {
			return orchestrator.Errorf(orchestrator.CodeInvalid, "--from begins a run that deals with all hosts: leave --failed-only out")
		}
		return a.with(ctx, func(cl *rpc.Client) error {
			run, err := cl.GetRun(ctx, args[0])
			if err != nil {
				return err
			}
			if from != "" && run.Step(orchestrator.StepKind(from)) == nil {
				return run.Kind.NoStep(orchestrator.StepKind(from))
			}
			spec, err := f.resume(ctx, a, cl, run, play, c.Flags().Changed("ssh-wait"))
			if err != nil {
				return err
			}
			spec.Args, spec.From, spec.FailedOnly = args[1:], orchestrator.StepKind(from), failedOnly
			run, err = cl.ResumeRun(ctx, string(run.ID), spec)
			if err != nil {
				return err
			}
			return a.submitted(ctx, cl, run, wait)
		})
	}
	return c
}

// resume snapshots the run's playbooks again and collects what the flags change.
// A playbook that nobody named and that is not where it was, say on the machine
// of another operator, stays the one that the daemon has.
func (f *chainFlags) resume(ctx context.Context, a *app, cl *rpc.Client, run orchestrator.Run, play string, waitChanged bool) (rpc.ResumeSpec, error) {
	spec := rpc.ResumeSpec{Egress: f.egress, SSHIdentities: f.identities, AcceptLost: f.acceptLost}
	if err := f.files(); err != nil {
		return spec, err
	}
	if waitChanged { // zero would leave it as it is
		if f.sshWait <= 0 {
			return spec, orchestrator.Errorf(orchestrator.CodeInvalid, "--ssh-wait %s is not above 0s", f.sshWait)
		}
		spec.SSHWait = f.sshWait
	}
	var err error
	if spec.Playbook, err = a.again(ctx, cl, play, &run.Spec.Playbook); err != nil {
		return spec, err
	}
	spec.OnboardPlaybook, err = a.again(ctx, cl, f.onboard, run.Spec.OnboardPlaybook)
	return spec, err
}

// again uploads the playbook that was named, else the one that the run had from
// where it was; nil keeps the run's.
func (a *app) again(ctx context.Context, cl *rpc.Client, named string, had *orchestrator.PlaybookRef) (*orchestrator.PlaybookRef, error) {
	path := named
	if path == "" {
		if had == nil {
			return nil, nil
		}
		path = had.Path
	}
	ref, err := cl.UploadPlaybook(ctx, path)
	if named == "" && errors.Is(err, orchestrator.ErrNotFound) {
		a.say("there is no %s here: the run keeps the playbook that it was submitted with", path)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &ref, nil
}

func (a *app) provisionCancel() *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use:   "cancel RUN|WORKSPACE",
		Short: "End a run; tofu is asked to stop and saves its state",
	}
	c.Flags().BoolVar(&force, "force", false, "kill the tool at once: what tofu has created may be missing in its state")
	wait := waitFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		ctx := c.Context()
		return a.with(ctx, func(cl *rpc.Client) error {
			run, err := cl.CancelRun(ctx, args[0], force)
			if err != nil {
				return err
			}
			if wait.on && !run.State.Final() {
				if run, err = a.awaitRun(ctx, cl, run, wait.timeout); err != nil {
					return err
				}
			}
			if wait.json {
				if err := a.printJSON(run); err != nil {
					return err
				}
			}
			if run.State.Final() {
				a.say("run %s is %s", run.ID, run.State)
			} else {
				a.say("run %s is ending; look: exocomp provision status %s", run.ID, run.ID)
			}
			return nil
		})
	}
	return c
}
