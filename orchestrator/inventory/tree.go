package inventory

// The sections of a group in Ansible's static form.
const (
	sectionHosts    = "hosts"
	sectionVars     = "vars"
	sectionChildren = "children"
)

// builder reads a document into an inventory and collects its mistakes.
type builder struct {
	inv *Inventory
	m   mistakes
	// ungrouped holds the variables of Ansible's group `ungrouped`. The group
	// of the workspace leaves no host ungrouped, so they are given to the hosts
	// that would have been.
	ungrouped variables
}

// finish checks what only the whole shows and returns the inventory.
func (b *builder) finish() (*Inventory, error) {
	b.names()
	if b.m.count == 0 {
		b.graph()
	}
	if err := b.m.err(); err != nil {
		return nil, err
	}
	return b.inv, nil
}

// tree reads an Ansible inventory tree: a map of group names to groups.
func (b *builder) tree(v value, p *place) {
	for _, m := range v.maps {
		at := p.child(m.key)
		if m.key == "_meta" {
			b.m.addf(at, "is the form that inventory executables print; write a tree: %s", example[OutputTree])
			continue
		}
		b.group(m.key, m.value, at, nil)
	}
}

// hostMap reads a map of host names to variables.
func (b *builder) hostMap(v value, p *place) {
	for _, m := range v.maps {
		if m.key == groupAll && m.value.kind == kindMap {
			b.m.addf(p.child(m.key), "no host may be called all; an inventory tree belongs in the output %s", OutputTree)
			continue
		}
		b.host(m.key, m.value, p.child(m.key))
	}
}

// group reads the definition of a group, which may be one of several, below
// parent or, where that is nil, at the top.
func (b *builder) group(name string, v value, p *place, parent *group) {
	if !b.groupName(name, p, parent) {
		return
	}
	g := b.inv.groups[name]
	if g == nil {
		g = newGroup(name, p)
		if name != groupUngrouped {
			b.inv.groups[name] = g
		}
	}
	if parent != nil && parent.name != groupAll {
		if _, ok := parent.children[name]; !ok {
			parent.children[name] = g
			g.parents = append(g.parents, parent)
		}
	}
	if v.kind == kindNull {
		return
	}
	if v.kind != kindMap {
		b.m.addf(p, "a group is a map of %s, %s and %s, not %s", sectionHosts, sectionVars, sectionChildren, v.kind)
		return
	}
	for _, s := range v.maps {
		b.section(g, s, p.child(s.key))
	}
	if name == groupUngrouped {
		b.ungrouped = b.ungrouped.merge(g.vars)
	}
}

// section reads the hosts, variables or children of g.
func (b *builder) section(g *group, s member, p *place) {
	switch s.key {
	case sectionHosts, sectionVars, sectionChildren:
	default:
		b.m.addf(p, "a group holds only %s, %s and %s (a map of hosts belongs in the output %s)",
			sectionHosts, sectionVars, sectionChildren, OutputHosts)
		return
	}
	switch s.value.kind {
	case kindNull:
		return
	case kindMap:
	default:
		b.m.addf(p, "must be a map of names, not %s", s.value.kind)
		return
	}
	switch s.key {
	case sectionHosts:
		for _, h := range s.value.maps {
			if b.host(h.key, h.value, p.child(h.key)) && g.name != groupAll {
				g.hosts[h.key] = struct{}{}
			}
		}
	case sectionVars:
		g.vars = g.vars.merge(b.variables(s.value, p))
	case sectionChildren:
		if g.name == groupUngrouped && len(s.value.maps) > 0 {
			b.m.addf(p, "ungrouped cannot have children")
			return
		}
		for _, c := range s.value.maps {
			b.group(c.key, c.value, p.child(c.key), g)
		}
	}
}

// host reads a host's variables, which add to those it has from other places.
func (b *builder) host(name string, v value, p *place) bool {
	if reason := notAHost(name, b.inv.Workspace); reason != "" {
		b.m.addf(p, "%s", reason)
		return false
	}
	if v.kind != kindMap && v.kind != kindNull {
		b.m.addf(p, "a host is a map of variables, not %s; for example: { ansible_host = \"192.0.2.10\" }", v.kind)
		return false
	}
	h := b.inv.hosts[name]
	if h == nil {
		h = &host{at: p}
		b.inv.hosts[name] = h
	}
	h.vars = h.vars.merge(b.variables(v, p))
	return true
}

// variables checks and returns the members of a map, or none for null.
func (b *builder) variables(v value, p *place) variables {
	for _, m := range v.maps {
		at := p.child(m.key)
		if reason := notAVariable(m.key); reason != "" {
			b.m.addf(at, "%s", reason)
			continue
		}
		checkVariable(m.key, m.value, at, &b.m)
	}
	return v.maps
}
