// Package play is the handler of a chain's last step: the user's playbook, from
// its snapshot, against the inventory that step 1 captured; of a leave play, the
// playbook that a resource runs when it is destroyed; and of a playbook run,
// against the inventory as it stands.
//
// Running it again is safe as far as the user's play is: Ansible plays are
// written to converge. Within one attempt it runs exactly once; a crash that
// takes the supervisor too re-arms it.
package play

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/ansible"
	"github.com/exocomp/exocomp/orchestrator/internal/ansible/supervised"
	"github.com/exocomp/exocomp/orchestrator/internal/hostkeys"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/inventory"
)

const phase = "play"

// Ledger is what the step reads of the ledger.
type Ledger interface {
	Run(ctx context.Context, id orchestrator.RunID) (orchestrator.Run, error)
	Inventory(ctx context.Context, workspace string) (orchestrator.Inventory, error)
	Admissions(ctx context.Context, workspace string) ([]orchestrator.Admission, error)
}

// Handler runs playbooks.
type Handler struct {
	Ledger         Ledger
	Pinner         *hostkeys.Pinner
	Runner         *supervised.Runner
	Snapshots      supervised.Snapshots
	AutomationUser string
	// Env returns the secrets that the resource which has a workspace gives its
	// playbooks, by their names in the environment; none is no error.
	Env func(ctx context.Context, workspace string) (map[string]orchestrator.Secret, error)
}

// Admitted is what a playbook run's own job has found out about the hosts before
// it plays.
type Admitted struct {
	Now        []orchestrator.Admission // by the job itself: the ledger has them when it ends
	Without    []string                 // hosts to leave out
	Identities []string                 // private key files to log in with, besides those of its spec
	Again      string                   // the command that has the job done once more
}

// Play runs the playbook of a [orchestrator.JobPlaybookRun].
func (h *Handler) Play(ctx context.Context, a *jobs.Attempt, ad Admitted) (orchestrator.Outcome, error) {
	w, err := h.work(ctx, a.Job)
	if err != nil {
		return orchestrator.Outcome{}, err
	}
	w.admitted = ad
	for _, f := range ad.Identities {
		if !slices.Contains(w.spec.SSHIdentities, f) {
			w.spec.SSHIdentities = append(slices.Clone(w.spec.SSHIdentities), f)
		}
	}
	return h.play(ctx, a, w)
}

// Handle implements [jobs.Handler].
func (h *Handler) Handle(ctx context.Context, a *jobs.Attempt) (orchestrator.Outcome, error) {
	w, err := h.work(ctx, a.Job)
	if err != nil {
		return orchestrator.Outcome{}, err
	}
	if w.handoff() && !a.Began(phase) {
		if out, err := h.pin(ctx, a, w); err != nil || !out.Succeeded() {
			return out, err
		}
	}
	return h.play(ctx, a, w)
}

func (h *Handler) play(ctx context.Context, a *jobs.Attempt, w work) (orchestrator.Outcome, error) {
	r, err := h.prepare(ctx, a, w)
	if err != nil {
		return orchestrator.Outcome{}, err
	}
	res, err := h.Runner.Execute(ctx, a, r)
	if err != nil {
		return orchestrator.Outcome{}, err
	}
	out := orchestrator.Outcome{
		Failure:  orchestrator.FailureOf(res.Err),
		Report:   res.Report,
		Warnings: res.Warnings,
	}
	if refused := ansible.LoginRefused(res.Report); out.Failure != nil && out.Failure.Hint == "" && len(refused) > 0 && r.Again != "" {
		out.Failure.Hint = "have it onboarded anew: " + onboardCommand(a.Job.Workspace, refused) + " && " + r.Again
		if w.handoff() {
			out.Failure.Hint = "put the fleet key there for that user (exocomp host fleet-key prints it), or log in with another key: " +
				orchestrator.WithIdentity(r.Again)
		}
	}
	return out, nil
}

// pin holds the hosts' keys against their pins, or records them: what onboarding
// does in the chain of four.
func (h *Handler) pin(ctx context.Context, a *jobs.Attempt, w work) (orchestrator.Outcome, error) {
	only := supervised.Only(w.chain, a.Job)
	hosts := slices.DeleteFunc(inventory.Effective(w.inv), func(x inventory.Host) bool { return x.Local() || !only(x.Name) })
	if len(hosts) == 0 {
		return orchestrator.Outcome{}, nil
	}
	return supervised.Pin(ctx, a, h.Pinner, hosts, hostkeys.Request{
		Again: w.chain.ResumeCommand(), Corrected: w.chain.ReapplyCommand(),
	})
}

// onboardCommand onboards hosts of a workspace, by hand.
func onboardCommand(workspace string, hosts []string) string {
	words := []string{"exocomp", "host", "onboard"}
	for _, h := range hosts {
		words = append(words, workspace+"/"+h)
	}
	return orchestrator.ShellCommand(append(words, "--wait")...)
}

// work is what a job runs.
type work struct {
	spec     orchestrator.PlaySpec
	inv      *inventory.Inventory // as it was captured
	args     []string
	chain    *orchestrator.Run // whose step it is; nil for a standalone job
	resource bool              // an exocomp_provision asked for it
	admitted Admitted          // of a playbook run
}

// handoff reports whether the play takes its hosts as the apply has left them:
// nobody has pinned or onboarded them, and it logs in as the inventory says.
func (w work) handoff() bool { return w.chain != nil && w.chain.Kind == orchestrator.RunHandoff }

func (h *Handler) work(ctx context.Context, j orchestrator.Job) (w work, err error) {
	switch {
	case j.Run != "":
		run, err := h.Ledger.Run(ctx, j.Run)
		if err != nil {
			return w, err
		}
		w = work{
			spec:     orchestrator.PlaySpec{Playbook: run.Spec.Playbook, Vars: run.Spec.Vars, SSHIdentities: run.Spec.SSHIdentities},
			args:     run.Spec.Args,
			chain:    &run,
			resource: run.Resource,
		}
	case j.Spec.Play == nil:
		return w, orchestrator.Errorf(orchestrator.CodeInternal, "job %s names no playbook", j.ID)
	default:
		w = work{spec: *j.Spec.Play, args: j.Spec.Args, resource: j.Kind == orchestrator.JobLeavePlay}
	}
	row, err := h.Ledger.Inventory(ctx, j.Workspace)
	if err != nil {
		return w, err
	}
	w.inv, err = supervised.Current(row, w.chain)
	return w, err
}

// login returns the inventory as the play logs in by it: as the automation user
// where a host was admitted so.
func (h *Handler) login(ctx context.Context, w work, workspace string) (*inventory.Inventory, error) {
	if w.handoff() {
		return w.inv, nil
	}
	admissions, err := h.Ledger.Admissions(ctx, workspace)
	if err != nil {
		return nil, err
	}
	automation := map[string]bool{}
	for _, ad := range slices.Concat(admissions, w.admitted.Now) {
		automation[ad.Host] = ad.Login == orchestrator.LoginAutomation
	}
	return h.Runner.AsAutomation(w.inv, h.AutomationUser, automation)
}

func (h *Handler) prepare(ctx context.Context, a *jobs.Attempt, w work) (supervised.Run, error) {
	var none supervised.Run
	inv, err := h.login(ctx, w, a.Job.Workspace)
	if err != nil {
		return none, err
	}
	vars, err := supervised.Vars(w.spec.Vars)
	if err != nil {
		return none, err
	}
	r := supervised.Run{
		Phase:      phase,
		Inventory:  inv,
		Vars:       vars,
		Args:       w.args,
		Identities: w.spec.SSHIdentities,
		Without:    w.admitted.Without,
		Again:      w.admitted.Again,
	}
	if w.resource {
		if r.Env, err = h.Env(ctx, a.Job.Workspace); err != nil {
			return none, err
		}
	}
	if w.chain != nil {
		r.Again = w.chain.ResumeCommand()
		if s := w.chain.Step(a.Job.StepKind); s != nil {
			r.Only = s.Only
		}
	}
	dir := filepath.Join(a.WorkDir, "snapshot")
	r.Playbook = ansible.Playbook{Snapshot: dir, Entry: w.spec.Playbook.Entry, Path: w.spec.Playbook.Path}
	r.Prepare = func() error { return supervised.Unpack(ctx, h.Snapshots, w.spec.Playbook.Digest, dir) }
	return r, nil
}
