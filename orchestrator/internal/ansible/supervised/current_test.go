package supervised

import (
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/inventory"
)

func TestARefusedInventorySaysHowToGoOn(t *testing.T) {
	row := func(hosts string) orchestrator.Inventory {
		content, err := inventory.Render(inventoryOf(t, hosts))
		if err != nil {
			t.Fatal(err)
		}
		return orchestrator.Inventory{Workspace: "edge", Content: content, Digest: inventory.Digest(content)}
	}
	empty, other := row(`{}`), row(`{"web1": {"ansible_host": "192.0.2.1"}}`)
	chainOf := func(kind orchestrator.RunKind) *orchestrator.Run {
		playbook := orchestrator.PlaybookRef{Path: "/src/site.yml"}
		return &orchestrator.Run{Kind: kind, Workspace: "edge", Inventory: empty.Digest, Spec: orchestrator.RunSpec{Playbook: playbook}}
	}
	chain := chainOf(orchestrator.RunProvision)
	for name, c := range map[string]struct {
		row   orchestrator.Inventory
		chain *orchestrator.Run
		then  string
	}{
		"no hosts, in a chain":  {empty, chain, "name hosts in the output hosts or ansible_inventory, then: exocomp workspace apply edge --wait && exocomp provision resume edge"},
		"no hosts, standalone":  {empty, nil, "then: exocomp workspace apply edge --wait"},
		"another, in a handoff": {other, chainOf(orchestrator.RunHandoff), "start another run: exocomp handoff run edge /src/site.yml"},
		"another one, in chain": {other, chain, "start another run: exocomp provision run edge /src/site.yml"},
	} {
		_, err := Current(c.row, c.chain)
		f := orchestrator.FailureOf(err)
		if f == nil || f.Code != orchestrator.CodeRefused || !strings.HasSuffix(f.Hint, c.then) {
			t.Errorf("%s: %+v, want refused and %q", name, f, c.then)
		}
	}
	if _, err := Current(other, nil); err != nil {
		t.Error(err)
	}
}
