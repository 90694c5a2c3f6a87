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
	// VendorRequirements installs the collections and roles of a requirements
	// file, which is part of an uploaded snapshot, in place of those before.
	VendorRequirements(ctx context.Context, requirements orchestrator.PlaybookRef) (Vendored, error)
}

// Vendored is what was installed for every later play.
type Vendored struct {
	Dir         string   `json:"dir"`         // on the daemon's host
	Collections []string `json:"collections"` // `namespace.name version`, sorted
	Roles       []string `json:"roles"`
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

func (s playbookServer) VendorRequirements(ctx context.Context, req *exocompv1.VendorRequirementsRequest) (*exocompv1.VendorRequirementsResponse, error) {
	v, err := s.svc.VendorRequirements(ctx, playbookFromWire(req.GetRequirements()))
	if err != nil {
		return nil, err
	}
	return &exocompv1.VendorRequirementsResponse{Dir: v.Dir, Collections: v.Collections, Roles: v.Roles}, nil
}

// VendorRequirements implements [Playbooks].
func (c *Client) VendorRequirements(ctx context.Context, requirements orchestrator.PlaybookRef) (Vendored, error) {
	resp, err := c.stubs.playbooks.VendorRequirements(ctx, &exocompv1.VendorRequirementsRequest{Requirements: playbookToWire(&requirements)})
	return Vendored{Dir: resp.GetDir(), Collections: resp.GetCollections(), Roles: resp.GetRoles()}, err
}

// SubmitPlaybook implements [Playbooks].
func (c *Client) SubmitPlaybook(ctx context.Context, key, inventory string, spec orchestrator.JobSpec) (orchestrator.Job, error) {
	req := &exocompv1.SubmitPlaybookRequest{Key: keyOr(key), Inventory: inventory, Spec: jobSpecToWire(spec)}
	resp, err := submit(ctx, c, c.stubs.playbooks.SubmitPlaybook, req)
	return jobFromWire(resp.GetJob()), err
}
