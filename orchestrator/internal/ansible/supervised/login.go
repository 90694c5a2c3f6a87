package supervised

import (
	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/inventory"
)

// AsAutomation returns the inventory as a run sees it that logs in to the given
// hosts as the automation user with the fleet key. Where the inventory's user
// was root, the run becomes root again, so that a play means the same as before
// onboarding; where it was not, become stays what the inventory says.
func (x *Runner) AsAutomation(inv *inventory.Inventory, user string, hosts map[string]bool) (*inventory.Inventory, error) {
	overrides := map[string]map[string]any{}
	for _, h := range inventory.Effective(inv) {
		if !hosts[h.Name] || h.Local() {
			continue
		}
		vars := map[string]any{
			"ansible_user":                 user,
			"ansible_ssh_private_key_file": nil,
		}
		if h.User == "root" || h.User == "" && x.RootByDefault {
			vars["ansible_become"] = true
		}
		overrides[h.Name] = vars
	}
	if len(overrides) == 0 {
		return inv, nil
	}
	return inv.Overlay(overrides)
}

// Current returns the ledger's inventory of a workspace, parsed. A chain names
// the digest that it requires: another one is refused, because an apply in
// between would change under the chain what it was asked to converge. chain is
// nil for what takes whichever inventory there is.
func Current(row orchestrator.Inventory, chain *orchestrator.Run) (*inventory.Inventory, error) {
	if chain != nil && chain.Inventory != "" && row.Digest != chain.Inventory {
		return nil, chain.InventoryChanged()
	}
	inv, err := inventory.Parse(row.Workspace, row.Content)
	if err != nil {
		return nil, err
	}
	if inv.HostCount() == 0 {
		then := orchestrator.ShellCommand("exocomp", "workspace", "apply", row.Workspace, "--wait")
		if chain != nil {
			then = chain.ReapplyCommand()
		}
		return nil, row.NamesNoHosts(then)
	}
	return inv, nil
}
