package inventory

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

func mustTreeOf(t *testing.T, workspace, value string) *Inventory {
	t.Helper()
	inv, err := Derive(workspace, map[string]Output{"ansible_inventory": {Value: json.RawMessage(value)}})
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

// TestMergeChangesNoHost: what each host is alone it is in the merged inventory,
// although the inventories say different things of all.
func TestMergeChangesNoHost(t *testing.T) {
	edge := mustTreeOf(t, "edge", `{"all":{"vars":{"x":"all","y":"all","ansible_user":"debian","v":"{{ z }}"},
		"children":{"web":{"vars":{"x":"web"},"hosts":{"web1":{},"web2":{"y":"own"}}}},"hosts":{"lone":{}}}}`)
	prod := mustTreeOf(t, "prod", `{"all":{"vars":{"x":"prod","only":1},"children":{"db":{"hosts":{"db1":{}}}}}}`)
	before := [2]string{mustRender(t, edge), mustRender(t, prod)}
	merged, err := Merge([]*Inventory{edge, prod})
	if err != nil {
		t.Fatal(err)
	}
	if after := [2]string{mustRender(t, edge), mustRender(t, prod)}; after != before {
		t.Error("the inventories themselves changed")
	}
	alone := slices.Concat(Effective(edge), Effective(prod))
	slices.SortFunc(alone, func(a, b Host) int { return strings.Compare(a.Name, b.Name) })
	if got := Effective(merged); !reflect.DeepEqual(got, alone) {
		t.Errorf("merged\n%+v\nalone\n%+v", got, alone)
	}
	script := string(RenderScript(merged))
	if !strings.Contains(script, `"edge": {"hosts": ["lone", "web1", "web2"]}`) || !strings.Contains(script, `"prod": {"hosts": ["db1"]}`) ||
		strings.Count(script, `"tf": `) != 1 {
		t.Errorf("each workspace has its group:\n%s", script)
	}
}

// TestMergeRefusesClashes, naming both workspaces.
func TestMergeRefusesClashes(t *testing.T) {
	for name, c := range map[string]struct{ a, b, want string }{
		"a host": {`{"all":{"hosts":{"web1":{},"x":{}}}}`, `{"all":{"hosts":{"web1":{}}}}`,
			"tf:edge and tf:prod both have a host called web1"},
		"a group": {`{"all":{"children":{"web":{"hosts":{"a":{}}}}}}`, `{"all":{"children":{"web":{"hosts":{"b":{}}}}}}`,
			"tf:edge and tf:prod both have a group called web"},
		"a host and a group": {`{"all":{"hosts":{"web":{}}}}`, `{"all":{"children":{"web":{"hosts":{"b":{}}}}}}`,
			"tf:edge and tf:prod clash: web is a host of the one and a group of the other"},
		"a workspace and a group": {`{"all":{"children":{"prod":{"hosts":{"a":{}}}}}}`, `{"all":{"hosts":{"b":{}}}}`,
			"tf:edge and tf:prod both have a group called prod"},
		"several": {`{"all":{"hosts":{"a":{},"b":{},"c":{}}}}`, `{"all":{"hosts":{"a":{},"b":{},"c":{}}}}`,
			"tf:edge and tf:prod both have a host called a, and 2 more name(s) clash"},
	} {
		_, err := Merge([]*Inventory{mustTreeOf(t, "edge", c.a), mustTreeOf(t, "prod", c.b)})
		if !errors.Is(err, orchestrator.ErrRefused) || !strings.HasPrefix(fmt.Sprint(err), c.want+"; name the inventory: EXOCOMP_INVENTORY=tf:edge") {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}
