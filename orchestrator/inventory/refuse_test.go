package inventory

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

const ed25519Key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"

// TestRefuseTree holds each rule of the inventory to its words and its place.
func TestRefuseTree(t *testing.T) {
	host := func(vars string) string { return `{"all":{"hosts":{"web1":` + vars + `}}}` }
	const at = "ansible_inventory.all.hosts.web1"
	deep := strings.Repeat("[", 140) + strings.Repeat("]", 140)
	var chain strings.Builder
	for i := range 60 {
		fmt.Fprintf(&chain, `,"g%03d":{"children":{"g%03d":{}}}`, i, i+1)
	}
	tests := []struct{ name, tree, place, words string }{
		{"not a map", `[]`, "ansible_inventory", "must be an Ansible inventory tree, not a list"},
		{"null", `null`, "ansible_inventory", "not null"},
		{"text", `"all"`, "ansible_inventory", "not a string"},
		{"executable form", `{"_meta":{"hostvars":{}}}`, "ansible_inventory._meta", "executables print"},
		{"group is a list", `{"web":["web1"]}`, "ansible_inventory.web", "not a list"},
		{"hosts is a list", `{"all":{"hosts":["web1"]}}`, "ansible_inventory.all.hosts", "must be a map of names"},
		{"host map in the tree's place", `{"web1":{"ansible_host":"192.0.2.1"}}`, "ansible_inventory.web1.ansible_host", "output hosts"},
		{"unknown section", `{"all":{"host":{}}}`, "ansible_inventory.all.host", "holds only"},
		{"host is text", host(`"192.0.2.1"`), at, "not a string"},
		{"host is false", host(`false`), at, "not a boolean"},

		{"host tf", `{"all":{"hosts":{"tf":{}}}}`, "ansible_inventory.all.hosts.tf", "names a group"},
		{"host all", `{"all":{"hosts":{"all":{}}}}`, "ansible_inventory.all.hosts.all", "names a group"},
		{"host like the workspace", `{"all":{"hosts":{"edge":{}}}}`, "ansible_inventory.all.hosts.edge", "narrow every run"},
		{"host like a group", `{"all":{"hosts":{"web":{}},"children":{"web":{}}}}`, "ansible_inventory.all.hosts.web", "ansible_inventory.all.children.web"},
		{"remote localhost", `{"all":{"hosts":{"localhost":{}}}}`, "ansible_inventory.all.hosts.localhost", `ansible_connection = "local"`},
		{"empty host name", `{"all":{"hosts":{"":{}}}}`, `ansible_inventory.all.hosts[""]`, "empty"},
		{"range", `{"all":{"hosts":{"web[1:3]":{}}}}`, `ansible_inventory.all.hosts["web[1:3]"]`, "ranges"},
		{"host and port", `{"all":{"hosts":{"web9:2222":{}}}}`, `ansible_inventory.all.hosts["web9:2222"]`, "ansible_port"},
		{"IPv6 address as a name", `{"all":{"hosts":{"2001:db8::1":{}}}}`, `ansible_inventory.all.hosts["2001:db8::1"]`, "ansible_host"},
		{"dash before a host", `{"all":{"hosts":{"-oProxyCommand":{}}}}`, "ansible_inventory.all.hosts.-oProxyCommand", "dash"},
		{"space in a host", `{"all":{"hosts":{"web 1":{}}}}`, `ansible_inventory.all.hosts["web 1"]`, "may hold letters"},
		{"slash in a host", `{"all":{"hosts":{"../x":{}}}}`, `ansible_inventory.all.hosts["../x"]`, "may hold letters"},
		{"unicode host", `{"all":{"hosts":{"wéb":{}}}}`, `ansible_inventory.all.hosts["wéb"]`, "may hold letters"},
		{"dots", `{"all":{"hosts":{"..":{}}}}`, `ansible_inventory.all.hosts[".."]`, "directory"},
		{"long host", `{"all":{"hosts":{"` + strings.Repeat("a", 254) + `":{}}}}`, `ansible_inventory.all.hosts["` + strings.Repeat("a", 60) + `"…]`, "253"},

		{"group tf", `{"all":{"children":{"tf":{}}}}`, "ansible_inventory.all.children.tf", "tf:edge"},
		{"group tf at the top", `{"tf":{"hosts":{"web1":{}}}}`, "ansible_inventory.tf", "no group may be called tf"},
		{"group localhost", `{"localhost":{}}`, "ansible_inventory.localhost", "control node"},
		{"nested all", `{"all":{"children":{"web":{"children":{"all":{}}}}}}`, "ansible_inventory.all.children.web.children.all", "root"},
		{"nested ungrouped", `{"web":{"children":{"ungrouped":{}}}}`, "ansible_inventory.web.children.ungrouped", "top"},
		{"children of ungrouped", `{"ungrouped":{"children":{"web":{}}}}`, "ansible_inventory.ungrouped.children", "cannot have children"},
		{"pattern in a group", `{"web:!db":{}}`, `ansible_inventory["web:!db"]`, "host patterns"},
		{"dash before a group", `{"-web":{}}`, "ansible_inventory.-web", "dash"},
		{"cycle", `{"a":{"children":{"b":{}}},"b":{"children":{"a":{}}}}`, "ansible_inventory.a", "a > b > a"},
		{"group in itself", `{"a":{"children":{"a":{}}}}`, "ansible_inventory.a", "a > a"},
		{"workspace group without a host", `{"edge":{"hosts":{"a":{}}},"all":{"hosts":{"b":{}}}}`, "ansible_inventory.edge", "lacks b"},
		{"groups too deep", `{` + chain.String()[1:] + `}`, "ansible_inventory.g", "levels deep"},

		{"null address", host(`{"ansible_host":null}`), at + ".ansible_host", "is null"},
		{"empty address", host(`{"ansible_host":""}`), at + ".ansible_host", "is empty"},
		{"blank address", host(`{"ansible_host":" "}`), at + ".ansible_host", "neither"},
		{"templated address", host(`{"ansible_host":"{{ lookup('pipe', 'id') }}"}`), at + ".ansible_host", "template"},
		{"address with a port", host(`{"ansible_host":"192.0.2.1:22"}`), at + ".ansible_host", "set ansible_port"},
		{"address in brackets", host(`{"ansible_host":"[2001:db8::1]"}`), at + ".ansible_host", "without brackets"},
		{"broken IPv6 address", host(`{"ansible_host":"2001:db8:::1"}`), at + ".ansible_host", "not an address"},
		{"hostile zone", host(`{"ansible_host":"fe80::1%$(id)"}`), at + ".ansible_host", "not an address"},
		{"option as address", host(`{"ansible_host":"-oProxyCommand=id"}`), at + ".ansible_host", "option"},
		{"address is a number", host(`{"ansible_host":10}`), at + ".ansible_host", "must be a string"},
		{"port 0", host(`{"ansible_port":0}`), at + ".ansible_port", "1 to 65535"},
		{"port 65536", host(`{"ansible_port":65536}`), at + ".ansible_port", "1 to 65535"},
		{"negative port", host(`{"ansible_port":-22}`), at + ".ansible_port", "1 to 65535"},
		{"fraction", host(`{"ansible_port":22.5}`), at + ".ansible_port", "1 to 65535"},
		{"port in words", host(`{"ansible_port":"ssh"}`), at + ".ansible_port", "1 to 65535"},
		{"port with a zero", host(`{"ansible_port":"022"}`), at + ".ansible_port", "1 to 65535"},
		{"port is true", host(`{"ansible_port":true}`), at + ".ansible_port", "not a boolean"},
		{"port is null", host(`{"ansible_port":null}`), at + ".ansible_port", "is null"},
		{"port of a group", `{"web":{"vars":{"ansible_port":70000}}}`, "ansible_inventory.web.vars.ansible_port", "1 to 65535"},
		{"user with a quote", host(`{"ansible_user":"a\" b"}`), at + ".ansible_user", "user name"},
		{"user with a newline", host(`{"ansible_user":"a\nb"}`), at + ".ansible_user", "user name"},
		{"connection", host(`{"ansible_connection":"docker"}`), at + ".ansible_connection", "ssh or local"},
		{"interpreter that steers a shell", host(`{"ansible_python_interpreter":"python3; id"}`), at + ".ansible_python_interpreter", "shell"},
		{"relative key file", host(`{"ansible_ssh_private_key_file":"id"}`), at + ".ansible_ssh_private_key_file", "absolute"},
		{"become", host(`{"ansible_become":"maybe"}`), at + ".ansible_become", "true or false"},

		{"password", host(`{"ansible_password":"hunter2"}`), at + ".ansible_password", "vault"},
		{"become password", host(`{"ansible_become_pass":"hunter2"}`), at + ".ansible_become_pass", "vault"},
		{"ssh arguments", host(`{"ansible_ssh_common_args":"-o ProxyCommand=id"}`), at + ".ansible_ssh_common_args", "host keys are verified"},
		{"ssh executable", host(`{"ansible_ssh_executable":"/tmp/x"}`), at + ".ansible_ssh_executable", "may not set this"},
		{"alias of the port", host(`{"ansible_ssh_port":22}`), at + ".ansible_ssh_port", "write ansible_port"},
		{"priority", `{"web":{"vars":{"ansible_group_priority":10}}}`, "ansible_inventory.web.vars.ansible_group_priority", "nest"},

		{"login", host(`{"exocomp_login":"root"}`), at + ".exocomp_login", "inventory"},
		{"misspelt variable of ours", host(`{"exocomp_hostkey":"x"}`), at + ".exocomp_hostkey", "exocomp_host_key"},
		{"key of another kind", host(`{"exocomp_host_key":"web1 ` + ed25519Key + `"}`), at + ".exocomp_host_key", "without a host name"},
		{"key cut short", host(`{"exocomp_host_key":"` + ed25519Key[:60] + `"}`), at + ".exocomp_host_key", "damaged"},
		{"key of another type than it says", host(`{"exocomp_host_key":"ssh-rsa ` + ed25519Key[12:] + `"}`), at + ".exocomp_host_key", "damaged"},
		{"two keys in a string", host(`{"exocomp_host_key":"` + ed25519Key + `\n` + ed25519Key + `"}`), at + ".exocomp_host_key", "list"},
		{"no keys", host(`{"exocomp_host_key":[]}`), at + ".exocomp_host_key", "must be"},
		{"number in the keys", host(`{"exocomp_host_key":[1]}`), at + ".exocomp_host_key", "must be"},
		{"empty instance", host(`{"exocomp_instance_id":""}`), at + ".exocomp_instance_id", "empty"},

		{"no identifier", host(`{"a-b":1}`), at + ".a-b", "variable name"},
		{"digit first", host(`{"1a":1}`), at + ".1a", "variable name"},
		{"unicode variable", host(`{"ü":1}`), at + `["ü"]`, "variable name"},
		{"keyword", host(`{"class":1}`), at + ".class", "keyword"},
		{"magic", host(`{"inventory_hostname":"x"}`), at + ".inventory_hostname", "itself"},
		{"key stands twice", host(`{"a":1,"b":2,"a":3}`), at + ".a", "twice"},
		{"host stands twice", `{"all":{"hosts":{"w":{},"w":{}}}}`, "ansible_inventory.all.hosts.w", "twice"},
		{"unsafe by hand", host(`{"a":{"__ansible_unsafe":"x"}}`), at + ".a.__ansible_unsafe", "meaning"},
		{"vault by hand", host(`{"a":[{"__ansible_vault":"x"}]}`), at + ".a[0].__ansible_vault", "meaning"},
		{"template in a key", host(`{"a":{"{{ x }}":1}}`), at + `.a["{{ x }}"]`, "template"},
		{"too deep", host(`{"a":` + deep + `}`), at + ".a[0]", "deeper than 128"},
		{"number out of range", host(`{"a":1e999}`), at + ".a", "out of range"},
		{"no UTF-8", host("{\"a\":\"\xff\"}"), "ansible_inventory", "UTF-8"},
		{"no JSON", `{`, "ansible_inventory", "not JSON"},
		{"too big", host(`{"a":"` + strings.Repeat("x", MaxSize) + `"}`), "ansible_inventory", "16 MiB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tree(tt.tree)
			refused(t, err, tt.place, tt.words)
		})
	}
}

// refused holds err to one line that begins with place and contains words, and
// to keeping what looks secret to itself.
func refused(t *testing.T, err error, place, words string) {
	t.Helper()
	if !errors.Is(err, orchestrator.ErrInvalid) {
		t.Fatalf("error %v, want one of code invalid", err)
	}
	line, rest, more := strings.Cut(err.Error(), "\n")
	if more && !strings.Contains(place, "ansible_inventory.g") {
		t.Errorf("more than one mistake: %s", rest)
	}
	if !strings.HasPrefix(line, place) || !strings.Contains(line, words) {
		t.Errorf("error %q, want %q at %s", line, words, place)
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a secret in the error: %v", err)
	}
}

func TestRefuseOutputs(t *testing.T) {
	tests := []struct {
		name         string
		output       string
		value        Output
		place, words string
	}{
		{"sensitive tree", "ansible_inventory", Output{Sensitive: true, Value: json.RawMessage(`"hunter2"`)}, "ansible_inventory", "sensitive"},
		{"sensitive hosts", "hosts", Output{Sensitive: true, Value: json.RawMessage(`{"a":{"k":"hunter2"}}`)}, "hosts", "sensitive"},
		{"hosts is a list", "hosts", Output{Value: json.RawMessage(`["192.0.2.1"]`)}, "hosts", "must be a map of host names to variables, not a list"},
		{"hosts is text", "hosts", Output{Value: json.RawMessage(`"192.0.2.1"`)}, "hosts", "not a string"},
		{"hosts without a value", "hosts", Output{}, "hosts", "not JSON"},
		{"map of addresses", "hosts", Output{Value: json.RawMessage(`{"web1":"192.0.2.1"}`)}, "hosts.web1", "map of variables"},
		{"tree in the place of hosts", "hosts", Output{Value: json.RawMessage(`{"all":{"hosts":{}}}`)}, "hosts.all", "ansible_inventory"},
		{"port", "hosts", Output{Value: json.RawMessage(`{"web1":{"ansible_port":"0"}}`)}, "hosts.web1.ansible_port", "65535"},
		{"output that steers", "ansible_ssh_common_args", Output{Value: json.RawMessage(`"x"`)}, "ansible_ssh_common_args", "may not set"},
		{"templated output that steers", "ansible_user", Output{Value: json.RawMessage(`"{{ x }}"`)}, "ansible_user", "template"},
		{"marked output", "x", Output{Value: json.RawMessage(`{"__ansible_vault":"x"}`)}, "x.__ansible_vault", "meaning"},
		{"big output", "x", Output{Value: json.RawMessage(`"` + strings.Repeat("x", MaxSize) + `"`)}, "x", "16 MiB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Derive("edge", map[string]Output{tt.output: tt.value})
			refused(t, err, tt.place, tt.words)
		})
	}
	if _, err := Derive("tf", nil); !errors.Is(err, orchestrator.ErrInvalid) {
		t.Errorf("a workspace called tf: %v", err)
	}
}

func TestAllMistakesTogether(t *testing.T) {
	_, err := tree(`{"all":{"hosts":{"a:1":{},"b":{"ansible_port":0,"ansible_password":"hunter2","c-d":1}}}}`)
	if err == nil {
		t.Fatal("no error")
	}
	want := []string{`["a:1"]: `, ".b.ansible_password: ", ".b.ansible_port: ", ".b.c-d: "}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d: %v", len(lines), len(want), err)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("no line for %s in %v", w, err)
		}
	}
}
