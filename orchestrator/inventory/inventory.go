// Package inventory turns the outputs of an OpenTofu apply into an Ansible
// inventory: it derives, validates, computes what Ansible will see of each
// host, and renders Ansible's static JSON form. It is pure: no files, no
// ledger, no clock. Whatever reaches [Render] has passed every rule, so that a
// published file never says something to Ansible that exocomp did not see.
//
// An inventory is derived once, from document order (OpenTofu prints maps
// sorted by key, which is the order Ansible reads them in), and normalized:
// each host's variables stand in one place, each group's in one place, and the
// group of all hosts that is named like the workspace exists.
package inventory

import (
	"sort"

	"github.com/exocomp/exocomp/orchestrator"
)

// MaxSize bounds an inventory, as it is given and as it is rendered.
const MaxSize = 16 << 20

const (
	// maxDepth bounds how deeply the lists and maps of an input may nest:
	// Ansible walks them recursively in a language with a shallow stack.
	maxDepth = 128
	// maxGroupDepth bounds how deeply groups may nest, references included.
	maxGroupDepth = 48
	// maxFileDepth bounds a rendered file: two levels a group, then a value.
	maxFileDepth = 2*maxGroupDepth + maxDepth + 8
	// maxName bounds host and group names, which become file names and
	// arguments; it is the longest DNS name.
	maxName = 253
)

// Names that Ansible or exocomp gives a meaning of their own.
const (
	groupAll       = "all"       // Ansible's root group
	groupUngrouped = "ungrouped" // Ansible's group of hosts in no other
	groupTofu      = "tf"        // kept empty, so that `tf:prod` is a union that means prod
)

// Inventory is a valid, normalized inventory of one workspace. It is
// immutable: [Inventory.Overlay] returns another one.
type Inventory struct {
	Workspace string // empty for what [Merge] returns
	// Captured counts the outputs that it was derived from; zero for one that
	// was read back or handed over.
	Captured int
	// Warnings are sentences about outputs that were left out.
	Warnings []string

	hosts  map[string]*host
	groups map[string]*group // `all` included; `tf` and `ungrouped` never
}

// host is a host's own variables; [Host] is what Ansible makes of them.
type host struct {
	vars variables
	at   *place // where it was named first
}

// group is a group's own variables and direct members.
type group struct {
	name     string
	at       *place // where it was named first
	vars     variables
	hosts    map[string]struct{}
	children map[string]*group
	parents  []*group // without `all`
	depth    int      // length of the longest way from `all`, as Ansible counts
}

// HostNames returns the names of all hosts, sorted.
func (inv *Inventory) HostNames() []string { return sortedKeys(inv.hosts) }

// HostCount returns the number of hosts.
func (inv *Inventory) HostCount() int { return len(inv.hosts) }

// newInventory returns an inventory that has only the root group.
func newInventory(workspace string) (*Inventory, error) {
	if err := orchestrator.ValidateWorkspaceName(workspace); err != nil {
		return nil, err
	}
	inv := &Inventory{
		Workspace: workspace,
		hosts:     map[string]*host{},
		groups:    map[string]*group{},
	}
	inv.groups[groupAll] = newGroup(groupAll, nil)
	return inv, nil
}

func newGroup(name string, at *place) *group {
	return &group{name: name, at: at, hosts: map[string]struct{}{}, children: map[string]*group{}}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
