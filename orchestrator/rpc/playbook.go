package rpc

import (
	"context"

	"github.com/exocomp/exocomp/orchestrator"
	exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"
)

// Playbooks runs playbooks against standing inventories, outside any chain.
type Playbooks interface {
	// SubmitPlaybook queues a [orchestrator.JobPlaybookRun]. inventory is
	// `tf:<workspace>`, or the workspace's name.
	SubmitPlaybook(ctx context.Context, key, inventory string, spec orchestrator.JobSpec) (orchestrator.Job, error)
}

type playbookServer struct {
	exocompv1.UnimplementedPlaybookServiceServer
	svc Playbooks
}

func (s playbookServer) SubmitPlaybook(ctx context.Context, req *exocompv1.SubmitPlaybookRequest) (*exocompv1.SubmitPlaybookResponse, error) {
	if err := requireKey(req.GetKey()); err != nil {
		return nil, err
	}
	j, err := s.svc.SubmitPlaybook(ctx, req.GetKey(), req.GetInventory(), jobSpecFromWire(req.GetSpec()))
	if err != nil {
		return nil, err
	}
	return &exocompv1.SubmitPlaybookResponse{Job: jobToWire(j)}, nil
}

// SubmitPlaybook implements [Playbooks].
func (c *Client) SubmitPlaybook(ctx context.Context, key, inventory string, spec orchestrator.JobSpec) (orchestrator.Job, error) {
	req := &exocompv1.SubmitPlaybookRequest{Key: keyOr(key), Inventory: inventory, Spec: jobSpecToWire(spec)}
	resp, err := submit(ctx, c, c.stubs.playbooks.SubmitPlaybook, req)
	return jobFromWire(resp.GetJob()), err
}
