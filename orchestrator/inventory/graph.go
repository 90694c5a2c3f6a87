package inventory

import (
	"sort"
	"strings"
)

// names refuses what one name makes ambiguous.
func (b *builder) names() {
	for _, name := range sortedKeys(b.inv.hosts) {
		if g := b.inv.groups[name]; g != nil {
			b.m.addf(b.inv.hosts[name].at, "a group has this name too (%s): choose another", g.at)
		}
	}
}

// graph checks how the groups contain each other, counts their depths as
// Ansible does, gives the variables of `ungrouped` away and makes the group of
// the workspace.
func (b *builder) graph() {
	if b.cycles(); b.m.count > 0 {
		return
	}
	b.spreadUngrouped()
	b.workspaceGroup()
	for _, name := range sortedKeys(b.inv.groups) {
		if g := b.inv.groups[name]; g.measure() > maxGroupDepth {
			b.m.addf(g.at, "is a group %d levels deep; groups may nest %d levels", g.depth, maxGroupDepth)
		}
	}
	if b.m.count == 0 {
		b.localhost()
	}
}

// measure returns the longest way from `all` to g, and notes it. It needs a
// graph without cycles.
func (g *group) measure() int {
	if g.depth == 0 && g.name != groupAll {
		g.depth = 1
		for _, parent := range g.parents {
			g.depth = max(g.depth, parent.measure()+1)
		}
	}
	return g.depth
}

// cycles refuses groups that contain themselves.
func (b *builder) cycles() {
	const (
		unseen = iota
		open
		closed
	)
	state := make(map[*group]int, len(b.inv.groups))
	var way []string
	var visit func(g *group)
	visit = func(g *group) {
		switch state[g] {
		case closed:
			return
		case open:
			i := len(way) - 1
			for way[i] != g.name {
				i--
			}
			b.m.addf(g.at, "groups contain each other: %s", strings.Join(append(way[i:len(way):len(way)], g.name), " > "))
			return
		}
		state[g] = open
		way = append(way, g.name)
		for _, name := range sortedKeys(g.children) {
			visit(g.children[name])
		}
		way = way[:len(way)-1]
		state[g] = closed
	}
	for _, name := range sortedKeys(b.inv.groups) {
		visit(b.inv.groups[name])
	}
}

// spreadUngrouped gives the variables of `ungrouped` to every host that is in
// no group, below its own.
func (b *builder) spreadUngrouped() {
	if len(b.ungrouped) == 0 {
		return
	}
	grouped := map[string]bool{}
	for _, g := range b.inv.groups {
		for h := range g.hosts {
			grouped[h] = true
		}
	}
	for name, h := range b.inv.hosts {
		if !grouped[name] {
			h.vars = b.ungrouped.merge(h.vars)
		}
	}
}

// workspaceGroup makes the group that holds all hosts, or checks that the one
// that is there does.
func (b *builder) workspaceGroup() {
	g := b.inv.groups[b.inv.Workspace]
	if g == nil {
		g = newGroup(b.inv.Workspace, nil)
		for name := range b.inv.hosts {
			g.hosts[name] = struct{}{}
		}
		b.inv.groups[g.name] = g
		return
	}
	held := map[string]bool{}
	seen := map[*group]bool{}
	var visit func(g *group)
	visit = func(g *group) {
		if seen[g] {
			return
		}
		seen[g] = true
		for h := range g.hosts {
			held[h] = true
		}
		for _, c := range g.children {
			visit(c)
		}
	}
	visit(g)
	var missing []string
	for name := range b.inv.hosts {
		if !held[name] {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		sort.Strings(missing)
		b.m.addf(g.at, "a group named like the workspace must hold all hosts, and lacks %s", list(missing))
	}
}

// localhost refuses a host of that name that is another machine: plays that say
// `hosts: localhost` mean the control node.
func (b *builder) localhost() {
	h := b.inv.hosts["localhost"]
	if h == nil {
		return
	}
	for _, e := range Effective(b.inv) {
		if e.Name == "localhost" && e.Connection != ConnectionLocal {
			b.m.addf(h.at, "a host called localhost must have ansible_connection = \"local\": choose another name for a machine reached by ssh")
		}
	}
}

// list shows the first of some names.
func list(names []string) string {
	const limit = 5
	if n := len(names); n > limit {
		return strings.Join(names[:limit], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
