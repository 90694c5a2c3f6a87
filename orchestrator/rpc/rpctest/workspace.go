package rpctest

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

func notFound(what, name string) error {
	return orchestrator.Errorf(orchestrator.CodeNotFound, "no %s %q", what, name)
}

// AddWorkspace implements [rpc.Workspaces].
func (s *Service) AddWorkspace(_ context.Context, w orchestrator.Workspace) (orchestrator.Workspace, error) {
	if err := w.Validate(); err != nil {
		return orchestrator.Workspace{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w.CreatedAt = time.Now().UTC()
	w.UpdatedAt = w.CreatedAt
	s.workspaces[w.Name] = w
	s.emit(orchestrator.Event{Kind: orchestrator.EventWorkspaceAdded, Workspace: w.Name})
	return w, nil
}

// GetWorkspace implements [rpc.Workspaces].
func (s *Service) GetWorkspace(_ context.Context, name string) (orchestrator.Workspace, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.workspaces[name]
	if !ok {
		return orchestrator.Workspace{}, notFound("workspace", name)
	}
	return w, nil
}

// ListWorkspaces implements [rpc.Workspaces].
func (s *Service) ListWorkspaces(context.Context) ([]orchestrator.Workspace, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []orchestrator.Workspace
	for _, name := range slices.Sorted(maps.Keys(s.workspaces)) {
		list = append(list, s.workspaces[name])
	}
	return list, nil
}

// RemoveWorkspace implements [rpc.Workspaces].
func (s *Service) RemoveWorkspace(_ context.Context, name string, _ bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.workspaces[name]; !ok {
		return notFound("workspace", name)
	}
	delete(s.workspaces, name)
	s.emit(orchestrator.Event{Kind: orchestrator.EventWorkspaceRemoved, Workspace: name})
	return nil
}

// ApplyWorkspace implements [rpc.Workspaces].
func (s *Service) ApplyWorkspace(ctx context.Context, key, name string, acceptLost bool) (orchestrator.Job, error) {
	return s.queue(ctx, key, orchestrator.Job{
		Kind: orchestrator.JobWorkspaceApply, Workspace: name,
		Spec: orchestrator.JobSpec{AcceptLost: acceptLost},
	})
}

// RefreshWorkspace implements [rpc.Workspaces].
func (s *Service) RefreshWorkspace(ctx context.Context, key, name string) (orchestrator.Job, error) {
	return s.queue(ctx, key, orchestrator.Job{
		Kind: orchestrator.JobWorkspaceApply, Workspace: name,
		Spec: orchestrator.JobSpec{RefreshOnly: true},
	})
}

// UnlockWorkspace implements [rpc.Workspaces].
func (s *Service) UnlockWorkspace(ctx context.Context, name, _ string) error {
	_, err := s.GetWorkspace(ctx, name)
	return err
}
