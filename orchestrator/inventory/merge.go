package inventory

import (
	"fmt"
	"maps"

	"github.com/exocomp/exocomp/orchestrator"
)

// Merge returns one inventory of several, each of another workspace, for Ansible
// to read at once. Every host keeps the variables that it has alone: what an
// inventory says of `all`, which is everybody here, stands with each of its hosts
// instead. The result belongs to no workspace.
//
// A host or group that two of them name would be one to Ansible. The first such
// name is the error, [orchestrator.CodeRefused].
func Merge(inventories []*Inventory) (*Inventory, error) {
	merged := &Inventory{
		hosts:  map[string]*host{},
		groups: map[string]*group{groupAll: newGroup(groupAll, nil)},
	}
	names := map[string]owner{}
	var clashes []clash
	for _, one := range inventories {
		clashes = append(clashes, one.claim(names)...)
		own := one.withoutAll()
		maps.Copy(merged.hosts, own.hosts)
		for name, g := range own.groups {
			if name != groupAll {
				merged.groups[name] = g
			}
		}
	}
	if len(clashes) > 0 {
		return nil, refuseClashes(clashes)
	}
	return merged, nil
}

// withoutAll returns the inventory with the variables of `all` at the hosts.
func (inv *Inventory) withoutAll() *Inventory {
	out := *inv
	out.hosts = maps.Clone(inv.hosts)
	of := map[string]bool{}
	for _, m := range inv.groups[groupAll].vars {
		of[m.key] = true
	}
	out.detach(of)
	return &out
}

// owner says whose a name is, and what it names there.
type owner struct{ workspace, what string }

// clash is a name that two inventories give.
type clash struct {
	name          string
	first, second owner
}

// claim notes the names of inv, in order, and returns those that are taken.
func (inv *Inventory) claim(names map[string]owner) []clash {
	var clashes []clash
	take := func(name, what string) {
		mine := owner{inv.Workspace, what}
		if other, taken := names[name]; taken {
			clashes = append(clashes, clash{name, other, mine})
			return
		}
		names[name] = mine
	}
	for _, name := range sortedKeys(inv.groups) {
		if name != groupAll {
			take(name, "group")
		}
	}
	for _, name := range inv.HostNames() {
		take(name, "host")
	}
	return clashes
}

func refuseClashes(clashes []clash) error {
	c := clashes[0]
	first, second := orchestrator.InventoryName(c.first.workspace), orchestrator.InventoryName(c.second.workspace)
	more := ""
	if n := len(clashes) - 1; n > 0 {
		more = fmt.Sprintf(", and %d more name(s) clash", n)
	}
	said := fmt.Sprintf("both have a %s called %s", c.first.what, c.name)
	if c.first.what != c.second.what {
		said = fmt.Sprintf("clash: %s is a %s of the one and a %s of the other", c.name, c.first.what, c.second.what)
	}
	return orchestrator.Errorf(orchestrator.CodeRefused, "%s and %s %s%s", first, second, said, more).
		WithHint("name the inventory: EXOCOMP_INVENTORY=%s", first)
}
