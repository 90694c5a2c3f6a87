// Package play is the handler of step 4: the user's playbook, from its
// snapshot, against the inventory that step 1 captured.
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
	return orchestrator.Outcome{
		Failure:  orchestrator.FailureOf(res.Err),
		Report:   res.Report,
		Warnings: res.Warnings,
	}, nil
}

func (h *Handler) prepare(ctx context.Context, a *jobs.Attempt) (supervised.Run, error) {
	var none supervised.Run
	run, err := h.Ledger.Run(ctx, a.Job.Run)
	if err != nil {
		return none, err
	}
	row, err := h.Ledger.Inventory(ctx, a.Job.Workspace)
	if err != nil {
		return none, err
	}
	inv, err := supervised.Current(row, run.Inventory)
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
	dir := filepath.Join(a.WorkDir, "snapshot")
	return supervised.Run{
		Phase:      phase,
		Playbook:   ansible.Playbook{Snapshot: dir, Entry: run.Spec.Playbook.Entry},
		Inventory:  inv,
		Args:       run.Spec.Args,
		Identities: run.Spec.SSHIdentities,
		Prepare:    func() error { return supervised.Unpack(ctx, h.Snapshots, run.Spec.Playbook.Digest, dir) },
	}, nil
}
