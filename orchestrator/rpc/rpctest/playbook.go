package rpctest

import (
	"context"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
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

// VendorRequirements implements [rpc.Playbooks]; it installs nothing.
func (s *Service) VendorRequirements(context.Context, orchestrator.PlaybookRef) (rpc.Vendored, error) {
	return rpc.Vendored{Dir: "/var/lib/exocomp/vendor/1", Collections: []string{"acme.tools 1.2.3"}}, nil
}
