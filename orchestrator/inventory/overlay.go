package inventory

import (
	"encoding/json"
	"fmt"
	"maps"
)

// Overlay returns the inventory with other variables for some hosts: what a
// job's own copy says, where that differs from the published one. A nil value
// takes a variable from its host, inherited or not; it then stands with every
// other host that had it, and in no group. Overrides beat every group and are
// not checked: they are exocomp's, never a user's. An unknown host or a value
// that is not JSON is an error.
func (inv *Inventory) Overlay(overrides map[string]map[string]any) (*Inventory, error) {
	out := *inv
	out.hosts = maps.Clone(inv.hosts)
	removed := map[string]bool{}
	for _, name := range sortedKeys(overrides) {
		if inv.hosts[name] == nil {
			return nil, fmt.Errorf("override variables of %q: no such host in the inventory of %s", name, inv.Workspace)
		}
		for variable, v := range overrides[name] {
			if v == nil {
				removed[variable] = true
			}
		}
	}
	out.detach(removed)
	for _, name := range sortedKeys(overrides) {
		vars := out.hosts[name].vars
		for _, variable := range sortedKeys(overrides[name]) {
			v := overrides[name][variable]
			if v == nil {
				vars = vars.without(variable)
				continue
			}
			x, err := valueOf(v)
			if err != nil {
				return nil, fmt.Errorf("override %s of %q: %w", variable, name, err)
			}
			vars = vars.with(variable, x)
		}
		out.hosts[name] = &host{vars: vars, at: inv.hosts[name].at}
	}
	return &out, nil
}

// detach moves the named variables from all groups to the hosts that have them.
func (inv *Inventory) detach(names map[string]bool) {
	inheritable := false
	for _, g := range inv.groups {
		for name := range names {
			_, ok := g.vars.get(name)
			inheritable = inheritable || ok
		}
	}
	if !inheritable {
		return
	}
	for _, h := range effective(inv) {
		own := inv.hosts[h.name]
		vars := own.vars
		for name := range names {
			if v, ok := h.vars().get(name); ok {
				vars = vars.with(name, v)
			}
		}
		inv.hosts[h.name] = &host{vars: vars, at: own.at}
	}
	inv.groups = cloneGroups(inv.groups)
	for _, g := range inv.groups {
		for name := range names {
			g.vars = g.vars.without(name)
		}
	}
}

// cloneGroups copies groups and the arrows between them.
func cloneGroups(groups map[string]*group) map[string]*group {
	clones := make(map[string]*group, len(groups))
	for name, g := range groups {
		c := *g
		clones[name] = &c
	}
	for _, c := range clones {
		children := make(map[string]*group, len(c.children))
		for name := range c.children {
			children[name] = clones[name]
		}
		parents := make([]*group, len(c.parents))
		for i, p := range c.parents {
			parents[i] = clones[p.name]
		}
		c.children, c.parents = children, parents
	}
	return clones
}

// valueOf reads a Go value as JSON.
func valueOf(v any) (value, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return value{}, err
	}
	var m mistakes
	x := decode(data, root("value"), maxDepth, false, &m)
	return x, m.err()
}
