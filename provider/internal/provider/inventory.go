package provider

import (
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/inventory"
)

// isTree tells the two forms of the attribute `inventory` apart. A tree has an
// object `all`, or is made of groups alone: objects with no other keys than a
// group has, not all of them empty. Everything else maps hosts to variables.
// What is not known yet fits both.
func isTree(v tftypes.Value) bool {
	top, _ := members(v)
	if all, ok := top["all"]; ok {
		_, object := members(all)
		return object || !all.IsKnown()
	}
	filled := false
	for _, group := range top {
		if !group.IsKnown() {
			continue
		}
		sections, object := members(group)
		if !object {
			return false
		}
		for name := range sections {
			if !slices.Contains([]string{"hosts", "children", "vars"}, name) {
				return false
			}
			filled = true
		}
	}
	return filled
}

// handOver returns a known value of the attribute `inventory` in the form in
// which the daemon takes it.
func handOver(v tftypes.Value) (*orchestrator.HandedInventory, error) {
	if _, ok := members(v); !ok {
		return nil, orchestrator.Errorf(orchestrator.CodeInvalid, "must be an inventory tree or a map of host names to variables").
			WithHint(`write, for example: { web1 = { ansible_host = "192.0.2.10" } }`)
	}
	doc, err := document(v)
	if err != nil {
		return nil, err
	}
	if isTree(v) {
		return &orchestrator.HandedInventory{Tree: doc}, nil
	}
	return &orchestrator.HandedInventory{Hosts: doc}, nil
}

// checkInventory finds, before anything is applied, what the daemon would refuse:
// it derives the inventory as the daemon does. granted are the key files that the
// resource names; nil where they are not known. All mistakes come back together.
func checkInventory(workspace string, h *orchestrator.HandedInventory, granted []string) error {
	output, doc := "hosts", h.Hosts
	if len(h.Tree) > 0 {
		output, doc = "ansible_inventory", h.Tree
	}
	inv, err := inventory.Derive(workspace, map[string]inventory.Output{output: {Value: doc}})
	if err != nil {
		return placed(err, output)
	}
	if _, err := inventory.Render(inv); err != nil {
		return err
	}
	var m orchestrator.Mistakes
	if inv.HostCount() == 0 {
		m.Addf("it names no hosts")
	}
	for _, host := range inventory.Effective(inv) {
		f := host.PrivateKeyFile
		if f != "" && !host.Local() && granted != nil && !slices.Contains(granted, f) {
			m.Addf("host %s names the key file %s and nobody granted it: add it to ssh_identities", host.Name, f)
		}
	}
	return m.Err()
}

// placed lets the places in the mistakes of a derivation begin with the name of
// the attribute, not with that of the output that it stands for.
func placed(err error, output string) error {
	f := orchestrator.FailureOf(err)
	lines := strings.Split(f.Message, "\n")
	for i, line := range lines {
		if below, ok := strings.CutPrefix(line, output); ok && strings.IndexAny(below, ".[:") == 0 {
			lines[i] = "inventory" + below
		}
	}
	return &orchestrator.Error{Code: f.Code, Message: strings.Join(lines, "\n"), Hint: f.Hint}
}
