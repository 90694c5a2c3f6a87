package rpctest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// ListInventories implements [rpc.Inventories].
func (s *Service) ListInventories(context.Context) ([]orchestrator.Inventory, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []orchestrator.Inventory
	for _, name := range slices.Sorted(maps.Keys(s.Inventories)) {
		i := s.Inventories[name].Inventory
		i.Content = nil
		list = append(list, i)
	}
	return list, nil
}

// GetInventory implements [rpc.Inventories].
func (s *Service) GetInventory(_ context.Context, name string) (rpc.InventoryView, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w, ok := orchestrator.WorkspaceOfInventory(name); ok {
		name = w
	}
	v, ok := s.Inventories[name]
	if !ok {
		return rpc.InventoryView{}, notFound("inventory", orchestrator.InventoryName(name))
	}
	return v, nil
}

// StandingInventory implements [rpc.Inventories], with words of its own.
func (s *Service) StandingInventory(ctx context.Context, name string) (orchestrator.Inventory, error) {
	v, err := s.GetInventory(ctx, name)
	if err == nil && v.Published != rpc.PublishedAgrees {
		err = orchestrator.Errorf(orchestrator.CodeRefused, "the file of %s %s", name, v.Published)
	}
	if err == nil && len(v.Inventory.Hosts) == 0 {
		err = orchestrator.Errorf(orchestrator.CodeRefused, "%s names no hosts", name)
	}
	if err != nil {
		return orchestrator.Inventory{}, err
	}
	return v.Inventory, nil
}

// ListPins implements [rpc.Hosts].
func (s *Service) ListPins(_ context.Context, f orchestrator.PinFilter) ([]orchestrator.Pin, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []orchestrator.Pin
	for _, p := range s.Pins {
		used := slices.ContainsFunc(p.Users, func(u orchestrator.PinUser) bool { return u.Workspace == f.Workspace })
		if (f.Workspace == "" || used) && (f.IncludeRetired || p.RetiredAt.IsZero()) {
			list = append(list, p)
		}
	}
	return list, nil
}

// ForgetHost implements [rpc.Hosts].
func (s *Service) ForgetHost(_ context.Context, ref string) (orchestrator.Pin, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range s.Pins {
		for _, u := range p.Users {
			if p.RetiredAt.IsZero() && (ref == u.Host || ref == u.Workspace+"/"+u.Host) {
				s.Pins[i].RetiredAt, s.Pins[i].Retired = time.Now().UTC(), "forgotten"
				return s.Pins[i], nil
			}
		}
	}
	return orchestrator.Pin{}, notFound("host", ref)
}

// OnboardHosts implements [rpc.Hosts]. It takes refs of the form workspace/host.
func (s *Service) OnboardHosts(ctx context.Context, key string, spec rpc.OnboardSpec) (orchestrator.Job, error) {
	j := orchestrator.Job{
		Kind: orchestrator.JobHostOnboard,
		Spec: orchestrator.JobSpec{Rotate: spec.Rotate, SSHIdentities: spec.SSHIdentities},
	}
	for _, ref := range spec.Hosts {
		workspace, host, ok := strings.Cut(ref, "/")
		if !ok {
			return orchestrator.Job{}, notFound("host", ref)
		}
		j.Workspace = workspace
		j.Spec.Hosts = append(j.Spec.Hosts, host)
	}
	return s.queue(ctx, key, j)
}

// GetFleetKey implements [rpc.Hosts].
func (s *Service) GetFleetKey(context.Context) (string, error) { return s.FleetKey, nil }

// GetOnboardVars implements [rpc.Hosts].
func (s *Service) GetOnboardVars(context.Context, string) (rpc.OnboardVars, error) {
	return s.OnboardVars, nil
}
