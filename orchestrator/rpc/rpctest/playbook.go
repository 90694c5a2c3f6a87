package rpctest

import (
	"context"

	"github.com/exocomp/exocomp/orchestrator"
)

// SubmitPlaybook implements [rpc.Playbooks].
func (s *Service) SubmitPlaybook(ctx context.Context, key, inventory string, spec orchestrator.JobSpec) (orchestrator.Job, error) {
	if err := spec.ValidatePlaybookRun(); err != nil {
		return orchestrator.Job{}, err
	}
	workspace, ok := orchestrator.WorkspaceOfInventory(inventory)
	if !ok {
		workspace = inventory
	}
	return s.queue(ctx, key, orchestrator.Job{Kind: orchestrator.JobPlaybookRun, Workspace: workspace, Spec: spec})
}
