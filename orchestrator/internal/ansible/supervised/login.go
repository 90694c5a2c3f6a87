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
// the digest that its first step recorded: another one is refused, because an
// apply in between would change under the chain what it was asked to converge.
func Current(row orchestrator.Inventory, digest string) (*inventory.Inventory, error) {
	if digest != "" && row.Digest != digest {
		return nil, orchestrator.Errorf(orchestrator.CodeRefused,
			"the inventory %s has changed since this run captured it", row.Name()).
			WithHint("start another run: exocomp provision run %s PLAYBOOK", row.Workspace)
	}
	inv, err := inventory.Parse(row.Workspace, row.Content)
	if err != nil {
		return nil, err
	}
	if inv.HostCount() == 0 {
		return nil, orchestrator.Errorf(orchestrator.CodeRefused, "refused: the inventory %s names no hosts", row.Name()).
			WithHint("declare an output ansible_inventory, or hosts, in the workspace's configuration")
	}
	return inv, nil
}
