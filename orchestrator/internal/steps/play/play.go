// Package play is the handler of step 4: the user's playbook, from its
// snapshot, against the inventory that step 1 captured; of a leave play, the
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

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/ansible"
	"github.com/exocomp/exocomp/orchestrator/internal/ansible/supervised"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
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
	Runner         *supervised.Runner
	Snapshots      supervised.Snapshots
	AutomationUser string
	// Env returns the secrets that the resource which has a workspace gives its
	// playbooks, by their names in the environment; none is no error.
	Env func(ctx context.Context, workspace string) (map[string]orchestrator.Secret, error)
}

// Handle implements [jobs.Handler].
func (h *Handler) Handle(ctx context.Context, a *jobs.Attempt) (orchestrator.Outcome, error) {
	r, err := h.prepare(ctx, a)
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
	}
	return out, nil
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
	args     []string
	chain    *orchestrator.Run // whose step it is; nil for a standalone job
	resource bool              // an exocomp_provision asked for it
}

func (h *Handler) work(ctx context.Context, j orchestrator.Job) (work, error) {
	if j.Run == "" {
		if j.Spec.Play == nil {
			return work{}, orchestrator.Errorf(orchestrator.CodeInternal, "job %s names no playbook", j.ID)
		}
		return work{spec: *j.Spec.Play, args: j.Spec.Args, resource: j.Kind == orchestrator.JobLeavePlay}, nil
	}
	run, err := h.Ledger.Run(ctx, j.Run)
	if err != nil {
		return work{}, err
	}
	return work{
		spec:     orchestrator.PlaySpec{Playbook: run.Spec.Playbook, Vars: run.Spec.Vars, SSHIdentities: run.Spec.SSHIdentities},
		args:     run.Spec.Args,
		chain:    &run,
		resource: run.Resource,
	}, nil
}

func (h *Handler) prepare(ctx context.Context, a *jobs.Attempt) (supervised.Run, error) {
	var none supervised.Run
	w, err := h.work(ctx, a.Job)
	if err != nil {
		return none, err
	}
	row, err := h.Ledger.Inventory(ctx, a.Job.Workspace)
	if err != nil {
		return none, err
	}
	inv, err := supervised.Current(row, w.chain)
	if err != nil {
		return none, err
	}
	admissions, err := h.Ledger.Admissions(ctx, a.Job.Workspace)
	if err != nil {
		return none, err
	}
	automation := map[string]bool{}
	for _, ad := range admissions {
		automation[ad.Host] = ad.Login == orchestrator.LoginAutomation
	}
	if inv, err = h.Runner.AsAutomation(inv, h.AutomationUser, automation); err != nil {
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
	}
	if w.resource {
		if r.Env, err = h.Env(ctx, a.Job.Workspace); err != nil {
			return none, err
		}
	}
	if w.chain != nil {
		r.Again = w.chain.ResumeCommand()
	}
	dir := filepath.Join(a.WorkDir, "snapshot")
	r.Playbook = ansible.Playbook{Snapshot: dir, Entry: w.spec.Playbook.Entry, Path: w.spec.Playbook.Path}
	r.Prepare = func() error { return supervised.Unpack(ctx, h.Snapshots, w.spec.Playbook.Digest, dir) }
	return r, nil
}
