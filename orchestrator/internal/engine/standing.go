package engine

import (
	"context"
	"errors"

	"github.com/exocomp/exocomp/orchestrator"
)

// StandingInventory returns the inventory of a name, `tf:<workspace>` or the
// workspace's alone, for something that plays against it. It fails closed: an
// unknown workspace is [orchestrator.CodeNotFound]; an inventory that was never
// captured, whose published file is lost or differs from the ledger, or which
// names no hosts is [orchestrator.CodeRefused]. Each says why in one line and
// what to do.
func (e *Engine) StandingInventory(ctx context.Context, name string) (orchestrator.Inventory, error) {
	workspace, ok := orchestrator.WorkspaceOfInventory(name)
	if !ok {
		workspace = name
	}
	var none orchestrator.Inventory
	if err := orchestrator.ValidateInventoryName(name); err != nil {
		return none, err
	}
	w, err := e.Workspace(ctx, workspace)
	if err != nil {
		return none, err
	}
	// Row and file are compared while nobody is between the two.
	release, err := e.settle(ctx)
	if err != nil {
		return none, err
	}
	defer release()
	row, err := e.Inventory(ctx, workspace)
	if errors.Is(err, orchestrator.ErrNotFound) {
		f := orchestrator.FailureOf(err)
		return none, orchestrator.Errorf(orchestrator.CodeRefused, "%s", f.Message).WithHint("%s", f.Hint)
	}
	if err == nil {
		err = e.cfg.Publisher.Verify(row)
	}
	if err != nil {
		return none, err
	}
	if len(row.Hosts) == 0 {
		then := orchestrator.ShellCommand("exocomp", "workspace", "apply", workspace, "--wait")
		if w.HandedOver() {
			then = "tofu apply, where the exocomp_provision is"
		}
		return none, row.NamesNoHosts(then)
	}
	return row, nil
}
