package daemon

import (
	"context"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/inventory"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// ListInventories implements [rpc.Inventories].
func (d *Daemon) ListInventories(ctx context.Context) ([]orchestrator.Inventory, error) {
	all, err := d.ledger.Inventories(ctx)
	for i := range all {
		all[i].Content = nil
	}
	return settled(ctx, d, all, err)
}

// GetInventory implements [rpc.Inventories].
func (d *Daemon) GetInventory(ctx context.Context, name string) (rpc.InventoryView, error) {
	workspace, ok := orchestrator.WorkspaceOfInventory(name)
	if !ok {
		workspace = name
	}
	row, err := d.inventory(ctx, workspace)
	if err != nil {
		return rpc.InventoryView{}, err
	}
	if err := d.engine.Settled(ctx); err != nil {
		return rpc.InventoryView{}, err
	}
	hosts, err := effective(row)
	if err != nil {
		return rpc.InventoryView{}, err
	}
	admissions, err := d.ledger.Admissions(ctx, workspace)
	if err != nil {
		return rpc.InventoryView{}, err
	}
	pins, err := d.ledger.Pins(ctx, orchestrator.PinFilter{Workspace: workspace})
	if err != nil {
		return rpc.InventoryView{}, err
	}
	settings, err := d.engine.Settings(ctx, workspace)
	if err != nil {
		return rpc.InventoryView{}, err
	}
	return rpc.InventoryView{
		Admission: rpc.AdmissionOf(settings),
		Inventory: row,
		Published: rpc.PublishedState(d.publisher.State(row)),
		Hosts:     viewHosts(hosts, admissions, pins),
	}, nil
}

// StandingInventory implements [rpc.Inventories].
func (d *Daemon) StandingInventory(ctx context.Context, name string) (orchestrator.Inventory, error) {
	return d.engine.StandingInventory(ctx, name)
}

// inventory reads the row of a workspace's inventory, with a hint where the
// workspace is there and has none yet.
func (d *Daemon) inventory(ctx context.Context, workspace string) (orchestrator.Inventory, error) {
	if _, err := d.ledger.Workspace(ctx, workspace); err != nil {
		return orchestrator.Inventory{}, err
	}
	return d.ledger.Inventory(ctx, workspace)
}

func effective(row orchestrator.Inventory) ([]inventory.Host, error) {
	inv, err := inventory.Parse(row.Workspace, row.Content)
	if err != nil {
		return nil, err
	}
	return inventory.Effective(inv), nil
}

func viewHosts(hosts []inventory.Host, admissions []orchestrator.Admission, pins []orchestrator.Pin) []rpc.InventoryHost {
	admitted := make(map[string]orchestrator.Admission, len(admissions))
	for _, a := range admissions {
		admitted[a.Host] = a
	}
	pinned := make(map[string]string, len(pins))
	for _, p := range pins {
		pinned[p.HostPort()] = p.SHA256
	}
	out := make([]rpc.InventoryHost, 0, len(hosts))
	for _, h := range hosts {
		out = append(out, rpc.InventoryHost{
			Name: h.Name, Address: h.Address, Port: h.Port, User: h.User, Connection: h.Connection, Groups: h.Groups,
			AdmittedAt: admitted[h.Name].At, Login: admitted[h.Name].Login,
			Fingerprint: pinned[orchestrator.KnownHostsName(strings.ToLower(h.Address), h.Port)],
		})
	}
	return out
}
