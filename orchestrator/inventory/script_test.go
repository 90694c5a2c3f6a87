package inventory

import (
	"encoding/json"
	"testing"

	"github.com/exocomp/exocomp/orchestrator/inventory/inventorytest"
)

func TestRenderScriptShape(t *testing.T) {
	inv := mustTree(t, `{"all":{"vars":{"v":"{{ x }}"},"children":{"web":{"hosts":{"web1":{"ansible_host":"192.0.2.1","ansible_port":2222}},
		"children":{"eu":{"hosts":{"web1":{}},"vars":{"n":1}}}},"db":{"children":{"eu":{}}}}}}`)
	want := `{
  "_meta": {
    "hostvars": {
      "web1": {"ansible_host": "192.0.2.1", "ansible_port": 2222}
    }
  },
  "all": {"hosts": ["web1"], "vars": {"v": {"__ansible_unsafe": "{{ x }}"}}, "children": ["db", "edge", "tf", "web"]},
  "db": {"hosts": [], "children": ["eu"]},
  "eu": {"hosts": ["web1"], "vars": {"n": 1}},
  "edge": {"hosts": ["web1"]},
  "tf": {"hosts": []},
  "web": {"hosts": ["web1"], "children": ["eu"]}
}
`
	if got := string(RenderScript(inv)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, ok := RenderHostVars(inv, "web1"); !ok || string(got) != "{\"ansible_host\": \"192.0.2.1\", \"ansible_port\": 2222}\n" {
		t.Errorf("--host: %v, %s", ok, got)
	}
	if got, ok := RenderHostVars(inv, "edge"); ok {
		t.Errorf("--host of a group: %s", got)
	}
}

// TestRenderScriptIsWhole: it is JSON, each group stands in it with its hosts, and
// each host in _meta. What Ansible makes of it the executable's own test asks.
func TestRenderScriptIsWhole(t *testing.T) {
	for name, source := range inventorytest.Valid {
		inv := mustTree(t, source)
		var meta struct {
			Meta struct{ HostVars map[string]map[string]any } `json:"_meta"`
		}
		var groups map[string]struct{ Hosts []string }
		rendered := RenderScript(inv)
		if err := json.Unmarshal(rendered, &meta); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, rendered)
		}
		if err := json.Unmarshal(rendered, &groups); err != nil {
			t.Fatal(err)
		}
		delete(groups, "_meta")
		if len(meta.Meta.HostVars) != inv.HostCount() || len(groups) != len(inv.groups)+1 {
			t.Errorf("%s: %d hosts and %d groups, want %d and %d", name, len(meta.Meta.HostVars), len(groups), inv.HostCount(), len(inv.groups)+1)
		}
		for group, g := range groups {
			if g.Hosts == nil {
				t.Errorf("%s: Ansible takes the group %s for a host", name, group)
			}
		}
	}
}
