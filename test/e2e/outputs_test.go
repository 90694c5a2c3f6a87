package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// local are the variables of a host that is this machine.
var local = vars{"ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3"}

// TestGateOutputs: the three ways to an inventory, and what each publishes.
func TestGateOutputs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()

	s.workspaceOutputs("tree", vars{"region": "fsn1", "ansible_inventory": vars{"all": vars{
		"vars": vars{"tier": "one"},
		"children": vars{"web": vars{
			"vars":  vars{"role": "web {{ 1 + 1 }}"},
			"hosts": vars{"web1": vars{"ansible_host": "192.0.2.1", "ansible_port": 2222, "ansible_user": "root"}, "here": local},
		}, "db": vars{"hosts": vars{"db1": vars{"ansible_host": "192.0.2.2"}}}},
	}}})
	s.ok("workspace", "apply", "tree", "--wait")
	s.holdsCaptured("tree", 1, 3)
	tree := s.listing("tree")
	role, _ := tree.vars("web1")["role"].(vars) // --list prints what is data as it stands in the file
	s.holds(role["__ansible_unsafe"] == "web {{ 1 + 1 }}" && tree.vars("db1")["tier"] == "one" && tree.vars("web1")["ansible_port"] == 2222.0,
		"ansible_inventory is the inventory: groups, variables, and templates as data", tree)

	s.workspace("map", map[string]vars{"here": local})
	s.ok("workspace", "apply", "map", "--wait")
	s.holdsCaptured("map", 1, 1)

	s.writeFile("infra/plain/main.tf.json", `{"output": {
		"region": {"value": "fsn1"}, "size": {"value": [1, 2]}, "password": {"value": "hunter2hunter2", "sensitive": true}}}`)
	s.ok("workspace", "add", "plain", filepath.Join(s.dir, "infra/plain"))
	play := s.playbook("site", rawPlay("all", "touch "+filepath.Join(s.dir, "played")))
	r, run := s.provision("plain", play)
	s.holdsCaptured("plain", 2, 0)
	file := s.read(filepath.Join(s.data(), "artifacts/inventory/plain.json"))
	s.holds(strings.Contains(file, "fsn1") && !strings.Contains(file, "hunter2"),
		"without either output, every output that is not sensitive is a variable of all", file)
	s.holds(r.code == 4, "a run of a hostless inventory exits 4", r)
	s.holds(slices.Equal(states(run), []orchestrator.StepState{
		orchestrator.StepSucceeded, orchestrator.StepFailed, orchestrator.StepBlocked, orchestrator.StepBlocked,
	}), "its step 1 succeeded, step 2 failed, 3 and 4 are blocked", states(run))
	f := run.Steps[1].Failure
	s.holds(f != nil && f.Code == orchestrator.CodeRefused && strings.HasPrefix(f.Message, "refused: ") && strings.Contains(f.Message, "names no hosts") && strings.Contains(r.String(), "names no hosts"),
		"it says refused: names no hosts", f, r)
	_, err := os.Stat(filepath.Join(s.dir, "played"))
	s.holds(os.IsNotExist(err), "no play ran", err)
}

// holdsCaptured: the newest capture of a workspace has an event in its exact
// words, and its file is private, equals the ledger and is what Ansible reads.
func (s *site) holdsCaptured(workspace string, outputs, hosts int) {
	s.t.Helper()
	path := filepath.Join(s.data(), "artifacts", "inventory", workspace+".json")
	want := fmt.Sprintf("captured %d output(s) to inventory %s naming %d host(s)", outputs, path, hosts)
	s.holds(slices.ContainsFunc(s.events("--workspace", workspace), func(e orchestrator.Event) bool {
		return e.Kind == orchestrator.EventInventoryCaptured && e.Message == want
	}), fmt.Sprintf("the event of %s reads: captured %d output(s) to inventory <path> naming %d host(s)", workspace, outputs, hosts), s.events("--workspace", workspace))

	info, err := os.Stat(path)
	s.holds(err == nil && info.Mode() == 0o600, "the file of "+workspace+" has mode 0600", info, err)
	view := jsonOf[rpc.InventoryView](s, "inventory", "show", workspace)
	s.holds(view.Published == rpc.PublishedAgrees && view.Inventory.Path == path &&
		s.read(path) == s.ok("inventory", "show", workspace, "--content").stdout,
		"the file of "+workspace+" equals the ledger", view)

	list := s.listing(workspace)
	agrees := len(list.Meta.HostVars) == len(view.Hosts)
	for _, h := range view.Hosts {
		v := list.vars(h.Name)
		agrees = agrees && v != nil && (v["ansible_host"] == nil || v["ansible_host"] == h.Address) &&
			(v["ansible_port"] == nil || v["ansible_port"] == float64(h.Port)) && (v["ansible_user"] == nil || v["ansible_user"] == h.User)
	}
	members := list.hosts(workspace)
	slices.Sort(members)
	s.holds(agrees && slices.Equal(members, view.Inventory.Hosts) && len(list.hosts("tf")) == 0,
		"ansible-inventory reads "+workspace+" as exocomp does, with all hosts in its group and none in tf", list, view)
}

// listing is what `ansible-inventory --list` prints.
type listing struct {
	Meta struct {
		HostVars map[string]vars `json:"hostvars"`
	} `json:"_meta"`
	groups map[string]struct {
		Hosts    []string `json:"hosts"`
		Children []string `json:"children"`
	}
}

func (l listing) vars(host string) vars { return l.Meta.HostVars[host] }

// hosts returns the hosts of a group and of the groups below it.
func (l listing) hosts(group string) []string {
	out := slices.Clone(l.groups[group].Hosts)
	for _, c := range l.groups[group].Children {
		out = append(out, l.hosts(c)...)
	}
	return out
}

// listing reads a workspace's published file with ansible-inventory.
func (s *site) listing(workspace string) listing {
	s.t.Helper()
	cmd := exec.Command("ansible-inventory", "-i", filepath.Join(s.data(), "artifacts", "inventory", workspace+".json"), "--list")
	cmd.Env = append(os.Environ(), "HOME="+s.dir, "ANSIBLE_LOCAL_TEMP="+filepath.Join(s.dir, "ansible-tmp"))
	cmd.Dir = s.dir
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("ansible-inventory: %v", err)
	}
	var l listing
	doc := map[string]json.RawMessage{}
	if err := json.Unmarshal(out, &l); err != nil {
		s.t.Fatal(err)
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		s.t.Fatal(err)
	}
	delete(doc, "_meta")
	rest, err := json.Marshal(doc)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := json.Unmarshal(rest, &l.groups); err != nil {
		s.t.Fatal(err)
	}
	return l
}
