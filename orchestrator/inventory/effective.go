package inventory

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
)

// Effective returns every host with the variables that Ansible computes for it,
// sorted by name. From weak to strong: `all`, then groups by depth (the longest
// way from `all`) and, where that ties, by name, then the host's own; a later
// value replaces an earlier one whole. The conformance test holds it to
// `ansible-inventory --list`.
func Effective(inv *Inventory) []Host {
	hosts := make([]Host, 0, len(inv.hosts))
	for _, r := range effective(inv) {
		hosts = append(hosts, r.host())
	}
	return hosts
}

// resolved is a host with what it inherits, before variables are read.
type resolved struct {
	name string
	from *inheritance
	own  variables
}

// vars returns all variables of the host.
func (r resolved) vars() variables { return r.from.vars.merge(r.own) }

// effective resolves every host, sorted by name. Hosts with the same direct
// groups share one inheritance, so the work does not grow with hosts × groups.
func effective(inv *Inventory) []resolved {
	names := sortedKeys(inv.groups)
	memberOf := make(map[string][]int, len(inv.hosts)) // indices of names
	for i, name := range names {
		for h := range inv.groups[name].hosts {
			memberOf[h] = append(memberOf[h], i)
		}
	}
	inherited := map[string]*inheritance{}
	hosts := make([]resolved, 0, len(inv.hosts))
	for _, name := range inv.HostNames() {
		key := groupKey(memberOf[name])
		from := inherited[key]
		if from == nil {
			direct := make([]*group, 0, len(memberOf[name]))
			for _, i := range memberOf[name] {
				direct = append(direct, inv.groups[names[i]])
			}
			from = inherit(inv, direct)
			inherited[key] = from
		}
		hosts = append(hosts, resolved{name, from, inv.hosts[name].vars})
	}
	return hosts
}

// inheritance is what all hosts with the same direct groups have in common.
type inheritance struct {
	groups  []string
	vars    variables
	decoded map[string]any
}

// inherit computes what direct membership in groups means.
func inherit(inv *Inventory, direct []*group) *inheritance {
	seen := map[*group]bool{}
	var above []*group
	var visit func(g *group)
	visit = func(g *group) {
		if seen[g] {
			return
		}
		seen[g] = true
		above = append(above, g)
		for _, p := range g.parents {
			visit(p)
		}
	}
	for _, g := range direct {
		visit(g)
	}
	slices.SortFunc(above, func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.depth, b.depth), strings.Compare(a.name, b.name))
	})
	in := &inheritance{vars: inv.groups[groupAll].vars, groups: make([]string, 0, len(above))}
	for _, g := range above {
		in.vars = in.vars.merge(g.vars)
		in.groups = append(in.groups, g.name)
	}
	slices.Sort(in.groups)
	in.decoded = make(map[string]any, len(in.vars))
	for _, m := range in.vars {
		in.decoded[m.key] = m.value.any()
	}
	return in
}

// host reads the variables of a host.
func (r resolved) host() Host {
	in := r.from
	h := Host{
		Name: r.name, Address: r.name, Port: defaultPort, Connection: ConnectionSSH,
		Login: orchestrator.LoginAutomation, Groups: slices.Clone(in.groups),
		Vars: make(map[string]any, len(in.decoded)+len(r.own)),
	}
	maps.Copy(h.Vars, in.decoded)
	for _, m := range in.vars {
		h.apply(m.key, m.value)
	}
	for _, m := range r.own {
		h.apply(m.key, m.value)
		h.Vars[m.key] = m.value.any()
	}
	return h
}

// groupKey names a set of groups, given by index in order.
func groupKey(groups []int) string {
	var b []byte
	for _, i := range groups {
		b = strconv.AppendInt(b, int64(i), 10)
		b = append(b, ' ')
	}
	return string(b)
}

// truth reads a boolean in one of Ansible's spellings.
func truth(v value) bool { return booleans[strings.ToLower(v.text)] }
