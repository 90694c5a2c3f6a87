package inventory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/inventory/inventorytest"
)

// TestAnsibleAgrees asks Ansible what it makes of each valid inventory, as its
// author wrote it and as we render it. Variables must agree in both, groups,
// address, port and user in what we render.
func TestAnsibleAgrees(t *testing.T) {
	valid := inventorytest.Valid
	names := sortedKeys(valid)
	dir := t.TempDir()
	var files []string
	for i, name := range names {
		rendered := mustRender(t, mustTree(t, valid[name]))
		for suffix, content := range map[string]string{"rendered": rendered, "written": valid[name]} {
			path := filepath.Join(dir, fmt.Sprintf("%d-%s.json", i, suffix))
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			files = append(files, path)
		}
	}
	inventorytest.List(t, files)
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			ours := Effective(mustTree(t, valid[name]))
			theirs := readListing(t, filepath.Join(dir, fmt.Sprintf("%d-rendered.json.out", i)))
			compareHosts(t, ours, theirs)
			compareGroups(t, ours, theirs)
			t.Run("as written", func(t *testing.T) {
				compareHosts(t, ours, readListing(t, filepath.Join(dir, fmt.Sprintf("%d-written.json.out", i))))
			})
		})
	}
}

// listing is what `ansible-inventory --list` says.
type listing struct {
	vars   map[string]map[string]any
	groups map[string][]string // of each host, sorted
}

func readListing(t *testing.T, path string) *listing {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	type group struct{ Hosts, Children []string }
	var meta struct {
		Meta struct{ HostVars map[string]map[string]any } `json:"_meta"`
	}
	groups := map[string]group{}
	if err := decodeNumbers(data, &meta); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &groups); err != nil {
		t.Fatal(err)
	}
	l := &listing{vars: map[string]map[string]any{}, groups: map[string][]string{}}
	delete(groups, "_meta")
	for name := range groups {
		seen := map[string]bool{}
		var visit func(string)
		visit = func(n string) {
			for _, h := range groups[n].Hosts {
				if !seen[h] {
					seen[h] = true
					l.groups[h] = append(l.groups[h], name)
				}
			}
			for _, c := range groups[n].Children {
				visit(c)
			}
		}
		visit(name)
	}
	for h, names := range l.groups {
		names = slices.DeleteFunc(names, func(n string) bool { return n == "all" })
		slices.Sort(names)
		l.groups[h] = names
		l.vars[h] = map[string]any{}
		for k, v := range meta.Meta.HostVars[h] {
			l.vars[h][k] = plain(v)
		}
	}
	return l
}

func decodeNumbers(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return dec.Decode(v)
}

// plain takes marks off strings and compares numbers by value.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if s, ok := v[unsafeKey]; ok && len(v) == 1 {
			return s
		}
		m := map[string]any{}
		for k, e := range v {
			m[k] = plain(e)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, e := range v {
			l[i] = plain(e)
		}
		return l
	case json.Number:
		if f, err := v.Float64(); err == nil && strings.ContainsAny(v.String(), ".eE") {
			return f
		}
	}
	return v
}

func compareHosts(t *testing.T, ours []Host, theirs *listing) {
	if len(ours) != len(theirs.vars) {
		t.Errorf("%d hosts, Ansible sees %d", len(ours), len(theirs.vars))
		return
	}
	for _, h := range ours {
		vars, ok := theirs.vars[h.Name]
		if !ok {
			t.Errorf("Ansible does not see %s", h.Name)
			continue
		}
		if got := plain(h.Vars); !reflect.DeepEqual(got, any(vars)) {
			t.Errorf("variables of %s:\n ours    %v\n Ansible %v", h.Name, got, vars)
		}
		word := func(variable, otherwise string) string {
			if v, ok := vars[variable]; ok {
				return fmt.Sprint(v)
			}
			return otherwise
		}
		got := []string{h.Address, fmt.Sprint(h.Port), h.User, h.Connection, h.PrivateKeyFile, h.PythonInterpreter, h.InstanceID, string(h.Login)}
		want := []string{word("ansible_host", h.Name), word("ansible_port", "22"), word("ansible_user", ""),
			word("ansible_connection", "ssh"), word("ansible_ssh_private_key_file", ""), word("ansible_python_interpreter", ""),
			word("exocomp_instance_id", ""), word("exocomp_login", string(orchestrator.LoginAutomation))}
		if !slices.Equal(got, want) {
			t.Errorf("%s is reached by %q, by Ansible by %q", h.Name, got, want)
		}
		become := slices.Contains([]string{"true", "yes", "1"}, word("ansible_become", ""))
		if h.Become != become {
			t.Errorf("%s becomes: %v, in Ansible %v", h.Name, h.Become, become)
		}
	}
}

func compareGroups(t *testing.T, ours []Host, theirs *listing) {
	for _, h := range ours {
		if !slices.Equal(h.Groups, theirs.groups[h.Name]) {
			t.Errorf("groups of %s are %q, in Ansible %q", h.Name, h.Groups, theirs.groups[h.Name])
		}
		if !slices.Contains(h.Groups, "edge") {
			t.Errorf("%s is not in the group of its workspace", h.Name)
		}
	}
}
