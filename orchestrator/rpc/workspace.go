package rpc

import (
	"context"

	"github.com/exocomp/exocomp/orchestrator"
	exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"
)

// Workspaces registers OpenTofu root modules and applies them.
type Workspaces interface {
	// AddWorkspace registers w, or changes its settings; times and lost
	// creates in w are ignored.
	AddWorkspace(ctx context.Context, w orchestrator.Workspace) (orchestrator.Workspace, error)
	GetWorkspace(ctx context.Context, name string) (orchestrator.Workspace, error)
	ListWorkspaces(ctx context.Context) ([]orchestrator.Workspace, error)
	RemoveWorkspace(ctx context.Context, name string, acceptLost bool) error
	ApplyWorkspace(ctx context.Context, key, name string, acceptLost bool) (orchestrator.Job, error)
	// RefreshWorkspace captures the outputs and applies nothing.
	RefreshWorkspace(ctx context.Context, key, name string) (orchestrator.Job, error)
	UnlockWorkspace(ctx context.Context, name, lockID string) error
}

type workspaceServer struct {
	exocompv1.UnimplementedWorkspaceServiceServer
	svc Workspaces
}

func (s workspaceServer) AddWorkspace(ctx context.Context, req *exocompv1.AddWorkspaceRequest) (*exocompv1.AddWorkspaceResponse, error) {
	w, err := s.svc.AddWorkspace(ctx, workspaceFromWire(req.GetWorkspace()))
	if err != nil {
		return nil, err
	}
	return &exocompv1.AddWorkspaceResponse{Workspace: workspaceToWire(w)}, nil
}

func (s workspaceServer) GetWorkspace(ctx context.Context, req *exocompv1.GetWorkspaceRequest) (*exocompv1.GetWorkspaceResponse, error) {
	w, err := s.svc.GetWorkspace(ctx, req.GetName())
	if err != nil {
		return nil, err
	}
	return &exocompv1.GetWorkspaceResponse{Workspace: workspaceToWire(w)}, nil
}

func (s workspaceServer) ListWorkspaces(ctx context.Context, _ *exocompv1.ListWorkspacesRequest) (*exocompv1.ListWorkspacesResponse, error) {
	ws, err := s.svc.ListWorkspaces(ctx)
	if err != nil {
		return nil, err
	}
	return &exocompv1.ListWorkspacesResponse{Workspaces: convert(ws, workspaceToWire)}, nil
}

func (s workspaceServer) RemoveWorkspace(ctx context.Context, req *exocompv1.RemoveWorkspaceRequest) (*exocompv1.RemoveWorkspaceResponse, error) {
	return &exocompv1.RemoveWorkspaceResponse{}, s.svc.RemoveWorkspace(ctx, req.GetName(), req.GetAcceptLost())
}

func (s workspaceServer) ApplyWorkspace(ctx context.Context, req *exocompv1.ApplyWorkspaceRequest) (*exocompv1.ApplyWorkspaceResponse, error) {
	if err := requireKey(req.GetKey()); err != nil {
		return nil, err
	}
	j, err := s.svc.ApplyWorkspace(ctx, req.GetKey(), req.GetName(), req.GetAcceptLost())
	if err != nil {
		return nil, err
	}
	return &exocompv1.ApplyWorkspaceResponse{Job: jobToWire(j)}, nil
}

func (s workspaceServer) RefreshWorkspace(ctx context.Context, req *exocompv1.RefreshWorkspaceRequest) (*exocompv1.RefreshWorkspaceResponse, error) {
	if err := requireKey(req.GetKey()); err != nil {
		return nil, err
	}
	j, err := s.svc.RefreshWorkspace(ctx, req.GetKey(), req.GetName())
	if err != nil {
		return nil, err
	}
	return &exocompv1.RefreshWorkspaceResponse{Job: jobToWire(j)}, nil
}

func (s workspaceServer) UnlockWorkspace(ctx context.Context, req *exocompv1.UnlockWorkspaceRequest) (*exocompv1.UnlockWorkspaceResponse, error) {
	return &exocompv1.UnlockWorkspaceResponse{}, s.svc.UnlockWorkspace(ctx, req.GetName(), req.GetLockId())
}

// AddWorkspace implements [Workspaces].
func (c *Client) AddWorkspace(ctx context.Context, w orchestrator.Workspace) (orchestrator.Workspace, error) {
	resp, err := c.stubs.workspaces.AddWorkspace(ctx, &exocompv1.AddWorkspaceRequest{Workspace: workspaceToWire(w)})
	return workspaceFromWire(resp.GetWorkspace()), err
}

// GetWorkspace implements [Workspaces].
func (c *Client) GetWorkspace(ctx context.Context, name string) (orchestrator.Workspace, error) {
	resp, err := c.stubs.workspaces.GetWorkspace(ctx, &exocompv1.GetWorkspaceRequest{Name: name})
	return workspaceFromWire(resp.GetWorkspace()), err
}

// ListWorkspaces implements [Workspaces].
func (c *Client) ListWorkspaces(ctx context.Context) ([]orchestrator.Workspace, error) {
	resp, err := c.stubs.workspaces.ListWorkspaces(ctx, &exocompv1.ListWorkspacesRequest{})
	return convert(resp.GetWorkspaces(), workspaceFromWire), err
}

// RemoveWorkspace implements [Workspaces].
func (c *Client) RemoveWorkspace(ctx context.Context, name string, acceptLost bool) error {
	_, err := c.stubs.workspaces.RemoveWorkspace(ctx, &exocompv1.RemoveWorkspaceRequest{Name: name, AcceptLost: acceptLost})
	return err
}

// ApplyWorkspace implements [Workspaces].
func (c *Client) ApplyWorkspace(ctx context.Context, key, name string, acceptLost bool) (orchestrator.Job, error) {
	req := &exocompv1.ApplyWorkspaceRequest{Key: keyOr(key), Name: name, AcceptLost: acceptLost}
	resp, err := submit(ctx, c, c.stubs.workspaces.ApplyWorkspace, req)
	return jobFromWire(resp.GetJob()), err
}

// RefreshWorkspace implements [Workspaces].
func (c *Client) RefreshWorkspace(ctx context.Context, key, name string) (orchestrator.Job, error) {
	req := &exocompv1.RefreshWorkspaceRequest{Key: keyOr(key), Name: name}
	resp, err := submit(ctx, c, c.stubs.workspaces.RefreshWorkspace, req)
	return jobFromWire(resp.GetJob()), err
}

// UnlockWorkspace implements [Workspaces].
func (c *Client) UnlockWorkspace(ctx context.Context, name, lockID string) error {
	_, err := c.stubs.workspaces.UnlockWorkspace(ctx, &exocompv1.UnlockWorkspaceRequest{Name: name, LockId: lockID})
	return err
}
