package inventory

import (
	"github.com/exocomp/exocomp/orchestrator"
)

// Parse reads back what [Render] wrote for workspace, by the same rules as
// [Derive]. A file that was not rendered by exocomp is refused.
func Parse(workspace string, data []byte) (*Inventory, error) {
	inv, err := newInventory(workspace)
	if err != nil {
		return nil, err
	}
	b := builder{inv: inv}
	at := root(orchestrator.InventoryName(workspace))
	v := decode(data, at, maxFileDepth, true, &b.m)
	if b.m.count > 0 {
		return b.finish()
	}
	all, _ := v.maps.get(groupAll)
	children, _ := all.maps.get(sectionChildren)
	_, tofu := children.maps.get(groupTofu)
	if len(v.maps) == 1 && tofu {
		children.maps = children.maps.without(groupTofu)
		all.maps = all.maps.with(sectionChildren, children)
		b.group(groupAll, all, at.child(groupAll), nil)
	}
	if b.m.count == 0 && inv.groups[workspace] == nil {
		b.m.addf(at, "is not an inventory that exocomp wrote: it lacks the group tf or %s", workspace)
	}
	return b.finish()
}
