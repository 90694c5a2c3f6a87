//go:build long

package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// TestLongGateProviderRegistered: without an inventory the daemon applies the
// workspace that it has registered. A failed step 1 is taken up like any other,
// what others run there is nothing to this resource, and its end leaves the
// machines as they are.
func TestLongGateProviderRegistered(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	web1 := s.host("web1")
	s.start()
	r := s.root("main")
	made, leave := s.gate("made"), s.hostGate(web1, "leave")
	disk := filepath.Join(s.dir, "disk")
	s.infra("edge", map[string]vars{"web1": hostVars(web1)},
		resource("made", made.count()), resource("second", needs(disk), "terraform_data.made"))
	a := attrs{
		"workspace": "edge", "playbook": s.playbook("site", rawPlay("tf:edge", "true")),
		"onboard_playbook": s.playbook("onboard", rawPlay("all", "true")),
		"destroy_playbook": s.playbook("leave", rawPlay("all", leave.count())),
		"ssh_identities":   []string{s.lab.Key().Path},
	}
	r.provision(a)
	r.applyFails("failed at step 1, tofu-apply", "terraform_data.second", "no disk here", "exocomp provision logs run_")
	s.writeFile("disk", "")
	r.apply()
	run := s.holdsRuns("edge", 1, "the run that failed at step 1 is the one that succeeded")
	s.wantAttempts(s.run(string(run)), [4]int{2, 1, 1, 1}, [4]int{})
	made.ran(1)
	p, _ := r.state()
	s.holds(p.Values.RunID == string(run) && p.Values.Hosts["web1"]["address"] == web1.Addr() && p.Values.Hosts["web1"]["port"] == 22.0,
		"the state has the address of the host", p)

	s.converge("edge", s.playbook("other", rawPlay("tf:edge", "true")), "--onboard-playbook", a["onboard_playbook"].(string))
	r.holdsEmpty("after an unrelated provision run")

	pins := s.pins()
	r.ok("destroy", "-auto-approve")
	leave.ran(1)
	s.holds(len(s.leaves()) == 1 && len(pins) == 1 && len(s.pins()) == 1, "the end runs the leave play once and keeps the pin", s.leaves(), s.pins())
	view := jsonOf[rpc.InventoryView](s, "inventory", "show", "edge")
	s.holds(len(view.Hosts) == 1 && view.Published == rpc.PublishedAgrees, "and the inventory", view)
	s.assertClean()
}

// TestLongGateProviderPreventDestroy: where tofu refuses the replacement, what the
// first error names makes it an update.
func TestLongGateProviderPreventDestroy(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	r := s.root("main")
	play := s.gate("play")
	disk := filepath.Join(s.dir, "disk")
	r.provision(attrs{
		"workspace": "edge", "playbook": s.playbook("site", rawPlay("tf:edge", needs(disk), play.count())), "inventory": thisMachine(),
	})
	config := r.s.read(filepath.Join(r.dir, "main.tf"))
	r.write("main.tf", strings.TrimSuffix(config, "}\n")+"  lifecycle {\n    prevent_destroy = true\n  }\n}\n")

	r.applyFails("failed at step 4, ansible-play", "no disk here", "`tofu untaint ADDRESS`", "with "+address)
	s.writeFile("disk", "")
	r.applyFails("nstance cannot be destroyed", address)
	play.ran(0)
	r.ok("untaint", address)
	done := r.actions()
	s.holds(done[address] == "update", "after tofu untaint the apply is an update", done)
	s.holdsRuns("edge", 1, "which takes the same run up")
	play.ran(1)
	r.holdsEmpty("after it")
}
