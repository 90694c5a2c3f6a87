//go:build long

package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// valuesPlay looks at its variables from inside and leaves a line for each host.
const valuesPlay = `- hosts: tf:edge:&web
  gather_facts: false
  tasks:
    - name: Look at the variables
      ansible.builtin.assert:
        that:
          - text == 'one {' ~ '{ lookup("pipe", "id") }' ~ '}'
          - number == 3 and fraction == 2.5 and huge == 9007199254740993
          - flag is sameas true and nothing is none
          - list == ['a', 'b', 3]
          - nested.users[0].name == 'ann' and nested.users[0].shells == ['sh'] and nested.limits.open == 10
          - ansible_host == '192.0.2.' ~ number_of[inventory_hostname]
    - name: Leave a line
      ansible.builtin.raw: echo VERSION {{ inventory_hostname }} >> LOG
`

// TestLongGateProviderValues: one configuration makes the machines and writes the
// playbook; addresses are known only when they are there. Variables of every
// type reach the play as they are, and an inventory may be a map or a tree.
func TestLongGateProviderValues(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	r := s.root("main")
	log := filepath.Join(s.dir, "log")
	play := func(version string) string {
		return strings.NewReplacer("VERSION", version, "LOG", log).Replace(valuesPlay)
	}
	template := r.write("template.yml", play("v1"))
	machines := `
resource "terraform_data" "machine" {
  for_each = { web1 = 11, web2 = 12 }
  input    = { ansible_host = "192.0.2.${each.value}", ansible_connection = "local", ansible_python_interpreter = "/usr/bin/python3" }
}
resource "terraform_data" "playbook" {
  input = "written/site.yml"
  provisioner "local-exec" {
    command = "mkdir -p written && cp ` + template + ` written/site.yml"
  }
}
`
	a := attrs{
		"workspace": "edge", "playbook": expr("terraform_data.playbook.output"),
		"inventory": expr("{ web = { hosts = { for name, m in terraform_data.machine : name => m.output } } }"),
		"vars": vars{
			"text": `one {{ lookup("pipe", "id") }}`, "number": 3, "fraction": 2.5, "huge": 9007199254740993, "flag": true, "nothing": nil,
			"list":      []any{"a", "b", 3},
			"nested":    vars{"users": []any{vars{"name": "ann", "shells": []string{"sh"}}}, "limits": vars{"open": 10}},
			"number_of": vars{"web1": 11, "web2": 12},
		},
	}
	r.provision(a, machines)
	done := r.actions()
	s.holds(len(done) == 4 && done[address] == "create", "one apply makes the machines, the playbook and provisions", done)
	s.holds(s.sortedLines(log) == "v1 web1\nv1 web2", "the playbook that the apply wrote has run on each, with values of every type", s.sortedLines(log))
	r.holdsEmpty("after it")
	view := jsonOf[rpc.InventoryView](s, "inventory", "show", "edge")
	s.holds(len(view.Hosts) == 2, "a tree with for_each hands over each machine", view.Hosts)

	// a saved plan is applied to the playbook as it is then
	r.write("written/site.yml", play("v2"))
	r.ok("plan", "-out=saved", "-input=false")
	r.write("written/site.yml", play("v3"))
	r.ok("apply", "-input=false", "saved")
	s.holds(strings.HasSuffix(s.sortedLines(log), "v3 web1\nv3 web2") && !strings.Contains(s.sortedLines(log), "v2"),
		"a saved plan runs the playbook as it is when it is applied", s.sortedLines(log))
	r.holdsEmpty("after a saved plan whose playbook was edited")

	// the same hosts as a map
	r.write("written/site.yml", strings.ReplaceAll(play("map"), ":&web", ""))
	r.provision(a.with(attrs{"inventory": expr("{ for name, m in terraform_data.machine : name => m.output }")}), machines)
	done = r.actions()
	s.holds(len(done) == 1 && done[address] == "update" && strings.Contains(s.sortedLines(log), "map web1\nmap web2"),
		"the inventory may be a map, too", done, s.sortedLines(log))
	r.holdsEmpty("after it")
}

// sortedLines returns the lines of a file of this machine in order.
func (s *site) sortedLines(path string) string {
	s.t.Helper()
	lines := strings.Fields(strings.ReplaceAll(strings.TrimSpace(s.read(path)), " ", "\x00"))
	slices.Sort(lines)
	return strings.ReplaceAll(strings.Join(lines, "\n"), "\x00", " ")
}
