package script

import (
	"context"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/inventory"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// standing reads the inventory of a workspace, or for none all that there are,
// merged. It fails closed, as the daemon does; in the merged view for any of them,
// whose hosts nobody would miss there.
func standing(ctx context.Context, from rpc.Inventories, workspace string) (*inventory.Inventory, error) {
	if workspace != "" {
		return one(ctx, from, workspace)
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
		inv, err := one(ctx, from, row.Workspace)
		if err != nil {
			return nil, err
		}
		all = append(all, inv)
	}
	return inventory.Merge(all)
}

func one(ctx context.Context, from rpc.Inventories, workspace string) (*inventory.Inventory, error) {
	row, err := from.StandingInventory(ctx, orchestrator.InventoryName(workspace))
	if err != nil {
		return nil, err
	}
	return inventory.Parse(workspace, row.Content)
}
