package inventory

import (
	"bytes"
	"fmt"
)

// The outputs that shape an inventory, in order of precedence.
const (
	OutputTree  = "ansible_inventory" // an Ansible inventory tree
	OutputHosts = "hosts"             // a map of host names to variables
)

// Derive builds the inventory of workspace from the outputs of its apply: from
// `ansible_inventory`; else from `hosts`; else every output that is not
// sensitive becomes a variable of the group `all`, and no host is named. All
// mistakes come back in one [orchestrator.CodeInvalid] error, each with its place.
//
// In the last case an output whose name cannot be a variable is left out with a
// warning: it was not written for Ansible.
func Derive(workspace string, outputs map[string]Output) (*Inventory, error) {
	inv, err := newInventory(workspace)
	if err != nil {
		return nil, err
	}
	b := builder{inv: inv}
	if tree, ok := outputs[OutputTree]; ok {
		if v, ok := b.shaping(OutputTree, tree, "an Ansible inventory tree"); ok {
			b.tree(v, root(OutputTree))
		}
		inv.Captured = 1
		return b.finish()
	}
	if hosts, ok := outputs[OutputHosts]; ok {
		if v, ok := b.shaping(OutputHosts, hosts, "a map of host names to variables"); ok {
			b.hostMap(v, root(OutputHosts))
		}
		inv.Captured = 1
		return b.finish()
	}
	b.outputs(outputs)
	return b.finish()
}

// shaping reads an output that says what the hosts are.
func (b *builder) shaping(name string, o Output, want string) (value, bool) {
	at := root(name)
	if o.Sensitive {
		b.m.addf(at, "is sensitive, and sensitive outputs are never part of an inventory: "+
			"remove what is secret from it and set sensitive = false (nonsensitive() where it only seems so)")
		return value{}, false
	}
	before := b.m.count
	v := decode(o.Value, at, maxDepth, false, &b.m)
	if b.m.count > before {
		return value{}, false
	}
	if v.kind != kindMap {
		b.m.addf(at, "must be %s, not %s; for example: %s", want, v.kind, example[name])
		return value{}, false
	}
	return v, true
}

// example shows each shaping output as one would write it.
var example = map[string]string{
	OutputTree:  `{ all = { hosts = { web1 = { ansible_host = "192.0.2.10" } } } }`,
	OutputHosts: `{ web1 = { ansible_host = "192.0.2.10" } }`,
}

// outputs makes every output that is not sensitive a variable of `all`.
func (b *builder) outputs(outputs map[string]Output) {
	all := b.inv.groups[groupAll]
	size := 0
	for _, name := range sortedKeys(outputs) {
		o := outputs[name]
		if o.Sensitive {
			continue
		}
		if reason := notAVariable(name); reason != "" {
			b.inv.Warnings = append(b.inv.Warnings, fmt.Sprintf("output %s is left out: %s", name, reason))
			continue
		}
		if size += len(o.Value); size > MaxSize {
			b.m.addf(root(name), "with it the outputs are over %d MiB", MaxSize>>20)
			return
		}
		v := decode(bytes.TrimSpace(o.Value), root(name), maxDepth, false, &b.m)
		checkVariable(name, v, root(name), &b.m)
		all.vars = append(all.vars, member{name, v})
		b.inv.Captured++
	}
}
