package inventory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// valid lists inventories that are in order. They are trees, so that Ansible
// can read each as its author wrote it, too.
var valid = map[string]string{
	"one host":                           `{"all":{"hosts":{"web1":{"ansible_host":"192.0.2.1","ansible_user":"root"}}}}`,
	"names alone":                        `{"all":{"hosts":{"web1":{},"web2":null}}}`,
	"no hosts":                           `{"all":{"children":{"web":{}}}}`,
	"null sections":                      `{"all":{"hosts":{"a":{}},"vars":null,"children":{"web":{"hosts":null,"vars":null,"children":null},"db":null}}}`,
	"IPv6":                               `{"all":{"hosts":{"a":{"ansible_host":"2001:db8::1"},"b":{"ansible_host":"::1"},"c":{"ansible_host":"fe80::1%eth0"}}}}`,
	"IPv4 as a name":                     `{"all":{"hosts":{"192.0.2.7":{}}}}`,
	"digits as a name":                   `{"all":{"hosts":{"123":{},"0":{}},"children":{"2024":{"hosts":{"123":{}}}}}}`,
	"domain names":                       `{"all":{"hosts":{"web1.example.com":{},"Web-2.EXAMPLE.com":{},"_srv":{},".hidden":{},"trailing-":{}}}}`,
	"address is a name":                  `{"all":{"hosts":{"a":{"ansible_host":"a.internal"}}}}`,
	"port as a number":                   `{"all":{"hosts":{"a":{"ansible_port":2222}}}}`,
	"port as text":                       `{"all":{"hosts":{"a":{"ansible_port":"2222"},"b":{"ansible_port":"65535"},"c":{"ansible_port":"1"}}}}`,
	"port of a group":                    `{"all":{"children":{"web":{"vars":{"ansible_port":2222},"hosts":{"a":{},"b":{"ansible_port":22}}}}}}`,
	"variables of all":                   `{"all":{"vars":{"ansible_user":"debian","x":1},"hosts":{"a":{},"b":{"ansible_user":"root","x":2}}}}`,
	"group over all":                     `{"all":{"vars":{"x":"all"},"children":{"web":{"vars":{"x":"web"},"hosts":{"a":{}}}},"hosts":{"b":{}}}}`,
	"child over parent":                  `{"all":{"children":{"site":{"vars":{"x":1,"y":1},"children":{"web":{"vars":{"x":2},"hosts":{"a":{}}}}}}}}`,
	"child that sorts before its parent": `{"all":{"children":{"z":{"vars":{"x":"z"},"children":{"a":{"vars":{"x":"a"},"hosts":{"h":{}}}}}}}}`,
	"a tie by name":                      `{"all":{"children":{"beta":{"vars":{"x":"beta"},"hosts":{"h":{}}},"alpha":{"vars":{"x":"alpha"},"hosts":{"h":{}}}}}}`,
	"a tie by case":                      `{"all":{"children":{"Zeta":{"vars":{"x":1},"hosts":{"h":{}}},"alpha":{"vars":{"x":2},"hosts":{"h":{}}},"_u":{"vars":{"x":3},"hosts":{"h":{}}}}}}`,
	"a tie by unicode":                   `{"all":{"children":{"é":{"vars":{"x":1},"hosts":{"h":{}}},"z":{"vars":{"x":2},"hosts":{"h":{}}},"日本":{"vars":{"x":3},"hosts":{"h":{}}}}}}`,
	"diamond":                            `{"all":{"children":{"a":{"vars":{"x":"a"},"children":{"c":{}}},"b":{"vars":{"x":"b","y":"b"},"children":{"c":{"vars":{"z":"c"},"hosts":{"h":{}}}}}}}}`,
	"long and short way":                 `{"all":{"children":{"a":{"children":{"b":{"children":{"c":{"vars":{"x":"c"},"hosts":{"h":{}}}}}}},"c":{},"d":{"vars":{"x":"d"},"hosts":{"h":{}}},"e":{"children":{"f":{"vars":{"x":"f"},"hosts":{"h":{}}}}}}}}`,
	"deep groups":                        `{"a":{"children":{"b":{"children":{"c":{"children":{"d":{"children":{"e":{"children":{"f":{"hosts":{"h":{}},"vars":{"x":"f"}}},"vars":{"x":"e"}}}}}}}}}}}`,
	"groups at the top":                  `{"web":{"hosts":{"a":{}},"vars":{"x":1}},"db":{"hosts":{"b":{}}},"all":{"vars":{"x":0,"y":0}}}`,
	"references at the top":              `{"prod":{"children":{"web":{},"db":{}},"vars":{"x":"prod"}},"web":{"hosts":{"a":{}},"vars":{"x":"web"}},"db":{"hosts":{"b":{}}}}`,
	"a group in pieces":                  `{"all":{"children":{"a":{"children":{"web":{"vars":{"x":1,"y":1}}}},"b":{"children":{"web":{"hosts":{"h":{}},"vars":{"y":2}}}}}}}`,
	"a host in pieces":                   `{"all":{"hosts":{"h":{"z":0}},"children":{"a":{"hosts":{"h":{"x":1,"y":1}}},"b":{"hosts":{"h":{"y":2}}}}}}`,
	"ungrouped":                          `{"all":{"hosts":{"a":{}},"children":{"ungrouped":{"hosts":{"b":{"x":1}},"vars":{"u":1,"x":0}},"web":{"hosts":{"c":{}}}},"vars":{"u":0}}}`,
	"ungrouped at the top":               `{"ungrouped":{"hosts":{"a":{}},"vars":{"u":1}},"web":{"hosts":{"a":{},"b":{}}}}`,
	"the workspace's own group":          `{"all":{"children":{"edge":{"hosts":{"a":{},"b":{}},"vars":{"x":"edge"}},"web":{"hosts":{"a":{}},"vars":{"x":"web"}}}}}`,
	"the workspace's group above":        `{"all":{"children":{"edge":{"vars":{"x":0},"children":{"web":{"hosts":{"a":{}}},"db":{"hosts":{"b":{}},"vars":{"x":1}}}}}}}`,
	"the workspace's group below":        `{"all":{"children":{"site":{"vars":{"x":0,"y":0},"children":{"edge":{"vars":{"x":1},"hosts":{"a":{}}}}}}}}`,
	"local":                              `{"all":{"hosts":{"localhost":{"ansible_connection":"local"},"builder":{"ansible_connection":"local","ansible_python_interpreter":"/usr/bin/python3"}}}}`,
	"localhost by its group":             `{"all":{"children":{"here":{"vars":{"ansible_connection":"local"},"hosts":{"localhost":{},"127.0.0.1":{}}}}}}`,
	"everything that steers":             `{"all":{"hosts":{"a":{"ansible_host":"h","ansible_port":1,"ansible_user":"DOM\\u.ser@x","ansible_connection":"ssh","ansible_python_interpreter":"/usr/bin/env python3","ansible_remote_tmp":"$HOME/.t","ansible_shell_type":"sh","ansible_become":"yes","ansible_become_user":"root","ansible_become_method":"ansible.builtin.sudo","ansible_ssh_private_key_file":"/keys/my id"}}}}`,
	"become in all spellings":            `{"all":{"vars":{"ansible_become":true},"hosts":{"a":{},"b":{"ansible_become":false},"c":{"ansible_become":"No"},"d":{"ansible_become":1}}}}`,
	"variables of ours":                  `{"all":{"vars":{"exocomp_login":"inventory"},"hosts":{"a":{"exocomp_host_key":"` + ed25519Key + ` root@a\n","exocomp_instance_id":42},"b":{"exocomp_host_key":["` + ed25519Key + `"],"exocomp_instance_id":"i-1"}}}}`,
	"unicode values":                     `{"all":{"hosts":{"a":{"motd":"grüße, 日本 \ud83d\ude00","esc":"a\"b\\c\n\t\u0000\u007f\u2028<&>"}}}}`,
	"values of all kinds":                `{"all":{"hosts":{"a":{"n":null,"t":true,"f":false,"i":-7,"big":123456789012345678901234567890,"d":0.1,"e":1e3,"s":"","l":[1,[2,{"k":[]}]],"m":{"x":{"y":{"1":{"":"empty key"}}}}}}}}`,
	"template markers":                   `{"all":{"vars":{"v":"{{ lookup('pipe','id') }}"},"hosts":{"a":{"l":["{% if x %}",{"k":"{# c #}"}],"half":"{ {","h":"#jinja2:variable_start_string:'[['\n[[ 1 ]]"}},"children":{"web":{"vars":{"g":["{{{{"]},"hosts":{"a":{}}}}}}`,
	"keywords as names":                  `{"all":{"hosts":{"class":{"self":1,"print":2,"none":3}},"children":{"import":{"hosts":{"class":{}}},"plugin":{"hosts":{"class":{}}}}}}`,
	"groups that only warn":              `{"all":{"children":{"web-servers":{"hosts":{"a":{}},"vars":{"x":1}},"eu.west":{"hosts":{"a":{}},"vars":{"x":2}}}}}`,
	"maps replace maps":                  `{"all":{"vars":{"m":{"a":1,"b":1}},"children":{"web":{"vars":{"m":{"b":2}},"hosts":{"h":{},"i":{"m":{}}}}}}}`,
	"sections as names":                  `{"all":{"hosts":{"hosts":{},"children":{}},"children":{"vars":{"hosts":{"hosts":{}},"vars":{"hosts":1}}}}}`,
}

// TestAnsibleAgrees asks Ansible what it makes of each valid inventory, as its
// author wrote it and as we render it. Variables must agree in both, groups,
// address, port and user in what we render.
func TestAnsibleAgrees(t *testing.T) {
	tool, err := exec.LookPath("ansible-inventory")
	if err != nil {
		t.Fatal("ansible-inventory is not installed; make setup installs ansible-core")
	}
	if len(valid) < 30 {
		t.Fatalf("only %d inventories", len(valid))
	}
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
	listAll(t, tool, dir, files)
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

// listAll runs ansible-inventory on every file, through the interpreter that
// the command itself names.
func listAll(t *testing.T, tool, dir string, files []string) {
	t.Helper()
	config := filepath.Join(dir, "ansible.cfg")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile(tool)
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(script), "\n")
	python := strings.Fields(strings.TrimPrefix(line, "#!"))
	if len(python) == 0 || !strings.Contains(line, "python") {
		t.Fatalf("%s is no Python script but a wrapper: put the directory of the real one first in PATH", tool)
	}
	args := slices.Concat(python[1:], []string{filepath.Join("testdata", "list.py")}, files)
	cmd := exec.Command(python[0], args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C.UTF-8", "ANSIBLE_CONFIG=" + config,
		"ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED=1"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
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
