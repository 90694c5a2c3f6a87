package inventory

// RenderScript returns the inventory in the form that Ansible's plugin `script`
// expects of an executable called with `--list`
// (https://docs.ansible.com/ansible/latest/dev_guide/developing_inventory.html).
// To Ansible it says what the file that [Render] writes says. Every group has its
// hosts, even none: without a section Ansible would take its name for a host's.
// The variables of the hosts stand in `_meta`, so that it asks only once.
func RenderScript(inv *Inventory) []byte {
	w := writer{inv: inv, defined: map[string]bool{}}
	w.b.WriteString("{\n  \"_meta\": {\n    \"hostvars\": {")
	names := inv.HostNames()
	for i, name := range names {
		w.item(i, 6)
		w.text(name)
		w.b.WriteString(": ")
		w.vars(inv.hosts[name].vars)
	}
	w.end(len(names), 4)
	w.b.WriteString("\n  }")
	top := inv.topGroups()
	w.scriptGroup(groupAll, inv.groups[groupAll].vars, names, top)
	for _, name := range top {
		w.scriptTree(name)
	}
	w.b.WriteString("\n}\n")
	return w.b.Bytes()
}

// RenderHostVars returns the variables of one host, in the form that Ansible
// expects of an executable called with `--host`: those that stand with the host
// itself, as its groups' reach it by its groups. ok is false for a name that the
// inventory does not have.
func RenderHostVars(inv *Inventory, name string) (rendered []byte, ok bool) {
	h := inv.hosts[name]
	if h == nil {
		return nil, false
	}
	var w writer
	w.vars(h.vars)
	w.b.WriteByte('\n')
	return w.b.Bytes(), true
}

// scriptTree writes a group and then those below it, each once.
func (w *writer) scriptTree(name string) {
	if w.defined[name] {
		return
	}
	w.defined[name] = true
	g := w.inv.groups[name]
	if g == nil { // tf, which is no group of the inventory's
		w.scriptGroup(name, nil, nil, nil)
		return
	}
	children := sortedKeys(g.children)
	w.scriptGroup(name, g.vars, sortedKeys(g.hosts), children)
	for _, c := range children {
		w.scriptTree(c)
	}
}

// scriptGroup writes one group behind the member before it.
func (w *writer) scriptGroup(name string, vars variables, hosts, children []string) {
	w.b.WriteString(",\n  ")
	w.text(name)
	w.b.WriteString(": {\"hosts\": ")
	w.names(hosts)
	if len(vars) > 0 {
		w.b.WriteString(", \"vars\": ")
		w.vars(vars)
	}
	if len(children) > 0 {
		w.b.WriteString(", \"children\": ")
		w.names(children)
	}
	w.b.WriteByte('}')
}

// names writes a list on one line.
func (w *writer) names(names []string) {
	w.b.WriteByte('[')
	for i, name := range names {
		if i > 0 {
			w.b.WriteString(", ")
		}
		w.text(name)
	}
	w.b.WriteByte(']')
}
