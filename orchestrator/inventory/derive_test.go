package inventory

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// tree derives the inventory of workspace `edge` from an ansible_inventory output.
func tree(value string) (*Inventory, error) {
	return Derive("edge", map[string]Output{"ansible_inventory": {Value: json.RawMessage(value)}})
}

func mustTree(t testing.TB, value string) *Inventory {
	t.Helper()
	inv, err := tree(value)
	if err != nil {
		t.Fatalf("derive %s: %v", value, err)
	}
	return inv
}

func mustRender(t testing.TB, inv *Inventory) string {
	t.Helper()
	data, err := Render(inv)
	if err != nil {
		t.Fatalf("render: %v", err)
	}
	return string(data)
}

func TestParseOutputs(t *testing.T) {
	outputs, err := ParseOutputs([]byte(`{
		"hosts": {"sensitive": false, "type": ["map", "string"], "value": {"web1": {"ansible_host": "192.0.2.1"}}},
		"token": {"sensitive": true, "type": "string", "value": "hunter2"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(outputs) != 2 || !outputs["token"].Sensitive || outputs["hosts"].Sensitive {
		t.Errorf("outputs = %+v", outputs)
	}
	for _, bad := range []string{"", "null", "[]", `{"a": "hunter2"}`, `{"a": {"sensitive": "hunter2"}}`, "hunter2"} {
		_, err := ParseOutputs([]byte(bad))
		if orchestrator.CodeOf(err) != orchestrator.CodeInternal {
			t.Errorf("ParseOutputs(%q) = %v, want an internal error", bad, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("ParseOutputs(%q) quotes a value: %v", bad, err)
		}
	}
	if outputs, err := ParseOutputs([]byte(" {}\n")); err != nil || len(outputs) != 0 {
		t.Errorf("no outputs: %v, %v", outputs, err)
	}
}

func TestDerivePrecedence(t *testing.T) {
	out := func(v string) Output { return Output{Value: json.RawMessage(v)} }
	secret := func(v string) Output { return Output{Sensitive: true, Value: json.RawMessage(v)} }
	tests := []struct {
		name     string
		outputs  map[string]Output
		captured int
		hosts    string
		warnings int
		vars     string // of `all`, as rendered
	}{
		{"tree before hosts", map[string]Output{
			"ansible_inventory": out(`{"all":{"hosts":{"a":{}}}}`), "hosts": out(`{"b":{}}`), "region": out(`"x"`)}, 1, "a", 0, ""},
		{"a tree makes the rest unimportant", map[string]Output{
			"ansible_inventory": out(`{"all":{"hosts":{"a":{}}}}`), "hosts": secret(`[]`)}, 1, "a", 0, ""},
		{"hosts before the rest", map[string]Output{"hosts": out(`{"b":{},"c":null}`), "region": out(`"x"`)}, 1, "b c", 0, ""},
		{"no hosts at all", map[string]Output{"hosts": out(`{}`)}, 1, "", 0, ""},
		{"every other output", map[string]Output{"region": out(`"fsn1"`), "sizes": out(`[1,2]`), "key": secret(`"hunter2"`)}, 2, "", 0,
			`"vars": {"region": "fsn1", "sizes": [1, 2]}`},
		{"names that are no variables", map[string]Output{"vpc-id": out(`"v"`), "class": out(`1`), "groups": out(`1`), "ok": out(`1`)}, 1, "", 3,
			`"vars": {"ok": 1}`},
		{"only sensitive outputs", map[string]Output{"key": secret(`"hunter2"`)}, 0, "", 0, ""},
		{"nothing", nil, 0, "", 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inv, err := Derive("edge", tt.outputs)
			if err != nil {
				t.Fatal(err)
			}
			if inv.Captured != tt.captured {
				t.Errorf("captured %d outputs, want %d", inv.Captured, tt.captured)
			}
			if got := strings.Join(inv.HostNames(), " "); got != tt.hosts || inv.HostCount() != len(strings.Fields(tt.hosts)) {
				t.Errorf("hosts %q, want %q", got, tt.hosts)
			}
			if len(inv.Warnings) != tt.warnings {
				t.Errorf("warnings %q, want %d", inv.Warnings, tt.warnings)
			}
			file := mustRender(t, inv)
			if !strings.Contains(file, tt.vars) || tt.vars == "" && strings.Contains(file, `"vars"`) {
				t.Errorf("want %s in\n%s", tt.vars, file)
			}
			if strings.Contains(file, "hunter2") {
				t.Errorf("a sensitive output in\n%s", file)
			}
		})
	}
}

// Ansible reads a tree from top to bottom: later definitions add to earlier
// ones and replace what both set.
func TestDefinitionsMerge(t *testing.T) {
	inv := mustTree(t, `{"all":{"children":{
		"a":{"hosts":{"h":{"x":1,"y":1}},"vars":{"g":1,"k":1}},
		"b":{"children":{"a":{"hosts":{"i":{}},"vars":{"k":2}}},"hosts":{"h":{"y":2,"z":2}}}}}}`)
	h := Effective(inv)[0]
	for name, want := range map[string]json.Number{"x": "1", "y": "2", "z": "2", "g": "1", "k": "2"} {
		if h.Vars[name] != want {
			t.Errorf("%s = %v, want %s", name, h.Vars[name], want)
		}
	}
	if got := strings.Join(h.Groups, " "); got != "a b edge" {
		t.Errorf("groups %q", got)
	}
}

func TestUngroupedVariables(t *testing.T) {
	inv := mustTree(t, `{"all":{"hosts":{"a":{"own":1,"v":1}},"vars":{"v":0,"w":0},"children":{
		"ungrouped":{"hosts":{"b":{}},"vars":{"v":2,"w":2}},"web":{"hosts":{"c":{}}}}}}`)
	want := map[string][2]json.Number{"a": {"1", "2"}, "b": {"2", "2"}, "c": {"0", "0"}}
	for _, h := range Effective(inv) {
		if h.Vars["v"] != want[h.Name][0] || h.Vars["w"] != want[h.Name][1] {
			t.Errorf("%s: v = %v, w = %v, want %v", h.Name, h.Vars["v"], h.Vars["w"], want[h.Name])
		}
	}
}

func TestMistakesAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 100 {
		b.WriteString(`,"h` + strings.Repeat("x", i) + `":{"ansible_port":0}`)
	}
	_, err := tree(`{"all":{"hosts":{` + b.String()[1:] + `}}}`)
	if err == nil {
		t.Fatal("no error")
	}
	if lines := strings.Split(err.Error(), "\n"); len(lines) != maxMistakes+1 || lines[maxMistakes] != "and 75 more like these" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}
