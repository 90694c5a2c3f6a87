package inventory

import (
	"fmt"
	"testing"
)

func TestOverlay(t *testing.T) {
	inv := mustTree(t, `{"all":{"vars":{"ansible_user":"root"},"children":{
		"web":{"vars":{"ansible_ssh_private_key_file":"/k/web","x":"{{ y }}"},"hosts":{"a":{},"b":{"ansible_user":"debian"},"c":{"ansible_ssh_private_key_file":"/k/c"}},
			"children":{"eu":{"hosts":{"a":{}}}}},
		"db":{"hosts":{"d":{}}}}}}`)
	before := mustRender(t, inv)
	job, err := inv.Overlay(map[string]map[string]any{
		"a": {"ansible_user": "exocomp", "ansible_become": true, "ansible_ssh_private_key_file": nil},
		"c": {"ansible_ssh_private_key_file": nil, "ansible_port": 2222, "note": "{{ z }}"},
		"d": {"ansible_ssh_private_key_file": nil},
	})
	if err != nil {
		t.Fatal(err)
	}
	if mustRender(t, inv) != before {
		t.Error("the inventory itself changed")
	}
	want := map[string]string{
		"a": "exocomp 22 true ",
		"b": "debian 22 false /k/web",
		"c": "root 2222 false ",
		"d": "root 22 false ",
	}
	back, err := Parse("edge", []byte(mustRender(t, job)))
	if err != nil {
		t.Fatal(err)
	}
	for _, which := range []*Inventory{job, back} {
		for _, h := range Effective(which) {
			if got := fmt.Sprint(h.User, " ", h.Port, " ", h.Become, " ", h.PrivateKeyFile); got != want[h.Name] {
				t.Errorf("%s: %q, want %q", h.Name, got, want[h.Name])
			}
			if h.Name != "d" && h.Vars["x"] != "{{ y }}" {
				t.Errorf("%s lost a variable of its group: %v", h.Name, h.Vars)
			}
		}
	}
	assertInert(t, []byte(mustRender(t, job)))
}

func TestOverlayRefuses(t *testing.T) {
	inv := mustTree(t, `{"all":{"hosts":{"a":{}}}}`)
	if _, err := inv.Overlay(map[string]map[string]any{"b": {"x": 1}}); err == nil {
		t.Error("an unknown host was overridden")
	}
	if _, err := inv.Overlay(map[string]map[string]any{"a": {"x": func() {}}}); err == nil {
		t.Error("a function became a variable")
	}
}
