package e2e

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// programs are those that a root module must work with: each gate of this file
// is run with every one that is installed.
func programs(t *testing.T, gate func(t *testing.T, program string)) {
	t.Helper()
	for _, program := range []string{"tofu", "terraform"} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(program); err != nil && program == "terraform" {
				t.Skip("skipped: terraform not installed")
			}
			gate(t, program)
		})
	}
}

// TestGateProviderApply: the first apply provisions and the plan after it is
// empty, whatever else happens; what changes the work is a change in place and a
// run of its own.
func TestGateProviderApply(t *testing.T) {
	t.Parallel()
	programs(t, gateProviderApply)
}

func gateProviderApply(t *testing.T, program string) {
	s := newSite(t)
	s.start()
	r := s.root("main")
	r.program = program
	play := s.gate("play")
	r.provision(attrs{
		"workspace": "edge", "playbook": "site.yml", "inventory": expr("var.inventory"), "vars": expr("var.vars"), "triggers": expr("var.triggers"),
	}, "variable \"inventory\" {\n  type = any\n}", "variable \"vars\" {\n  type    = any\n  default = { n = 1 }\n}", "variable \"triggers\" {\n  type    = map(string)\n  default = {}\n}")
	inventory := func(more vars) string {
		here := thisMachine()
		for name, value := range more {
			here["here"][name] = value
		}
		return "inventory=" + r.literal(here)
	}
	r.env = []string{"TF_VAR_" + inventory(nil)}
	r.write("site.yml", "- hosts: tf:edge\n  gather_facts: false\n  roles: [web]\n")
	role := func(lines ...string) {
		r.write("roles/web/tasks/main.yml", taskLines(lines...))
	}
	role(play.count())

	done := r.actions()
	s.holds(done[address] == "create", "the first apply creates the resource", done)
	play.ran(1)
	first := s.holdsRuns("edge", 1, "the first apply made one run")
	p, _ := r.state()
	host := p.Values.Hosts["here"]
	s.holds(p.Values.ID == "edge" && p.Values.RunID == string(first) && p.Values.Status == "succeeded" && len(p.Values.Steps) == 4 &&
		len(p.Values.Hosts) == 1 && host["state"] == "changed" && host["address"] == nil, "the state tells of the run, its steps and its hosts", p)

	r.holdsEmpty("right after it, with the playbook beside the state")
	touch(t, r.dir)
	s.stop()
	s.start()
	r.holdsEmpty("when the tree was touched and the daemon restarted")

	changes := []struct {
		what   string
		change func()
	}{
		{"playbook", func() {
			r.write("site.yml", "- hosts: tf:edge\n  gather_facts: false\n  roles: [web]\n  tags: [again]\n")
		}},
		{"role file", func() { role(play.count(), "true") }},
		{"inventory", func() { r.env[0] = "TF_VAR_" + inventory(vars{"color": "blue"}) }},
		{"variable", func() { r.env = append(r.env, "TF_VAR_vars={ n = 2 }") }},
		{"trigger", func() { r.env = append(r.env, `TF_VAR_triggers={ image = "v2" }`) }},
	}
	if program != "tofu" {
		changes = changes[1:2] // what depends on the program is shown by any of them
	}
	for i, c := range changes {
		c.change()
		done := r.actions()
		s.holds(done[address] == "update", "a changed "+c.what+" is a change in place", done)
		play.ran(i + 2)
		s.holdsRuns("edge", i+2, "and a run of its own")
	}
	r.holdsEmpty("after all of them")
	s.assertClean()
}

// touch gives every file of a tree another time and leaves it as it is.
func touch(t *testing.T, dir string) {
	t.Helper()
	when := time.Now().Add(-time.Hour)
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, when, when)
	})
	if err != nil {
		t.Fatal(err)
	}
}
