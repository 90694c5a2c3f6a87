package script

import (
	"context"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/inventory"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// standing reads the inventory of a workspace, or for none all that there are,
// merged. It fails closed: what is unknown, was never captured, has lost its file
// or names no hosts is an error, in the merged view too, where the hosts that are
// missing would not be missed.
func standing(ctx context.Context, from rpc.Inventories, workspace string) (*inventory.Inventory, error) {
	if workspace != "" {
		return read(ctx, from, workspace)
	}
	rows, err := from.ListInventories(ctx)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, orchestrator.Errorf(orchestrator.CodeRefused, "there is no inventory yet").
			WithHint("an apply makes one: exocomp workspace apply WORKSPACE")
	}
	all := make([]*inventory.Inventory, 0, len(rows))
	for _, row := range rows {
		inv, err := read(ctx, from, row.Workspace)
		if err != nil {
			return nil, err
		}
		all = append(all, inv)
	}
	return inventory.Merge(all)
}

// read reads one inventory.
func read(ctx context.Context, from rpc.Inventories, workspace string) (*inventory.Inventory, error) {
	view, err := from.GetInventory(ctx, workspace)
	if err != nil {
		return nil, err
	}
	row := view.Inventory
	refused := func(format string, args ...any) *orchestrator.Error {
		return orchestrator.Errorf(orchestrator.CodeRefused, format, args...)
	}
	switch {
	case view.Published == rpc.PublishedMissing:
		return nil, refused("the inventory %s has lost its file %s", row.Name(), row.Path).WithHint("exocomp workspace refresh %s", workspace)
	case view.Published != rpc.PublishedAgrees:
		return nil, refused("the file %s of the inventory %s differs from the ledger", row.Path, row.Name()).WithHint("exocomp workspace refresh %s", workspace)
	}
	inv, err := inventory.Parse(workspace, row.Content)
	if err != nil {
		return nil, err
	}
	if inv.HostCount() == 0 {
		return nil, refused("the inventory %s names no hosts", row.Name()).
			WithHint("name hosts in the output hosts or ansible_inventory, then: exocomp workspace apply %s", workspace)
	}
	return inv, nil
}
