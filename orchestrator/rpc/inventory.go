package rpc

import (
	"context"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"
)

// Inventories reads the standing inventories.
type Inventories interface {
	// ListInventories answers every inventory by name, without its Content.
	ListInventories(ctx context.Context) ([]orchestrator.Inventory, error)
	// GetInventory takes a workspace, or `tf:<workspace>`.
	GetInventory(ctx context.Context, name string) (InventoryView, error)
	// StandingInventory is GetInventory for something that plays against it: it
	// fails closed. An unknown workspace is [orchestrator.CodeNotFound]; one that
	// was never captured, whose published file is lost or differs, or that names
	// no hosts is [orchestrator.CodeRefused].
	StandingInventory(ctx context.Context, name string) (orchestrator.Inventory, error)
}

// InventoryView is an inventory with what the daemon knows of its hosts.
type InventoryView struct {
	Inventory orchestrator.Inventory `json:"inventory"`
	Published PublishedState         `json:"published"`
	Hosts     []InventoryHost        `json:"hosts"` // by name
	Admission AdmissionSettings      `json:"admission"`
}

// AdmissionSettings is how a playbook run admits hosts of a workspace.
type AdmissionSettings struct {
	Run             orchestrator.RunID        `json:"run,omitempty"`              // whose settings they are; empty where there was none yet
	PinOnly         bool                      `json:"pin_only,omitempty"`         // it pins and onboards nobody, as the handoff did
	SSHWait         time.Duration             `json:"ssh_wait_ns,omitempty"`      // nanoseconds in JSON
	OnboardPlaybook *orchestrator.PlaybookRef `json:"onboard_playbook,omitempty"` // nil: the seeded one
	SSHIdentities   []string                  `json:"ssh_identities,omitempty"`   // absolute paths on the daemon's host
}

// AdmissionOf returns the settings that a run leaves, which is zero where there
// was none.
func AdmissionOf(run orchestrator.Run) AdmissionSettings {
	s := AdmissionSettings{
		Run: run.ID, PinOnly: run.Kind == orchestrator.RunHandoff, SSHWait: run.Spec.SSHWait,
		OnboardPlaybook: run.Spec.OnboardPlaybook, SSHIdentities: run.Spec.SSHIdentities,
	}
	if s.SSHWait == 0 && !s.PinOnly {
		s.SSHWait = orchestrator.DefaultSSHWait
	}
	return s
}

// PublishedState says whether the published file agrees with the ledger.
type PublishedState string

const (
	PublishedAgrees  PublishedState = "agrees"
	PublishedDiffers PublishedState = "differs"
	PublishedMissing PublishedState = "missing"
)

// InventoryHost is a host with its effective variables, its admission and its
// pin.
type InventoryHost struct {
	Name        string             `json:"name"`
	Address     string             `json:"address"` // ansible_host
	Port        int                `json:"port"`
	User        string             `json:"user,omitempty"` // that the inventory names, or empty
	Connection  string             `json:"connection"`     // ssh or local
	Groups      []string           `json:"groups,omitempty"`
	AdmittedAt  time.Time          `json:"admitted_at,omitzero"`  // zero until it is admitted
	Login       orchestrator.Login `json:"login,omitempty"`       // empty until it is admitted
	Fingerprint string             `json:"fingerprint,omitempty"` // of the pinned key, as ssh-keygen -l prints it, or empty
}

type inventoryServer struct {
	exocompv1.UnimplementedInventoryServiceServer
	svc Inventories
}

func (s inventoryServer) ListInventories(ctx context.Context, _ *exocompv1.ListInventoriesRequest) (*exocompv1.ListInventoriesResponse, error) {
	is, err := s.svc.ListInventories(ctx)
	if err != nil {
		return nil, err
	}
	return &exocompv1.ListInventoriesResponse{Inventories: convert(is, inventoryToWire)}, nil
}

func (s inventoryServer) GetInventory(ctx context.Context, req *exocompv1.GetInventoryRequest) (*exocompv1.GetInventoryResponse, error) {
	v, err := s.svc.GetInventory(ctx, req.GetName())
	if err != nil {
		return nil, err
	}
	return inventoryViewToWire(v), nil
}

func (s inventoryServer) GetStandingInventory(ctx context.Context, req *exocompv1.GetStandingInventoryRequest) (*exocompv1.GetStandingInventoryResponse, error) {
	i, err := s.svc.StandingInventory(ctx, req.GetName())
	if err != nil {
		return nil, err
	}
	return &exocompv1.GetStandingInventoryResponse{Inventory: inventoryToWire(i)}, nil
}

// ListInventories implements [Inventories].
func (c *Client) ListInventories(ctx context.Context) ([]orchestrator.Inventory, error) {
	resp, err := c.stubs.inventories.ListInventories(ctx, &exocompv1.ListInventoriesRequest{})
	return convert(resp.GetInventories(), inventoryFromWire), err
}

// GetInventory implements [Inventories].
func (c *Client) GetInventory(ctx context.Context, name string) (InventoryView, error) {
	resp, err := c.stubs.inventories.GetInventory(ctx, &exocompv1.GetInventoryRequest{Name: name})
	return inventoryViewFromWire(resp), err
}

// StandingInventory implements [Inventories].
func (c *Client) StandingInventory(ctx context.Context, name string) (orchestrator.Inventory, error) {
	resp, err := c.stubs.inventories.GetStandingInventory(ctx, &exocompv1.GetStandingInventoryRequest{Name: name})
	return inventoryFromWire(resp.GetInventory()), err
}
