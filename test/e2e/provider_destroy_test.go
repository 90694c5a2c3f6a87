package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// TestGateProviderDestroy: hosts that the resource handed over are its own. One
// that is gone is no change until the configuration says so; in the end a live
// run is cancelled, the leave play runs once, and no inventory and no pin stay.
func TestGateProviderDestroy(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	web1, web2 := s.host("web1"), s.host("web2")
	s.start()
	r := s.root("main")
	r.env = []string{"TF_LOG_PROVIDER=INFO"}
	play, leave := s.hostGate(web1, "play"), s.hostGate(web1, "leave")
	a := attrs{
		"workspace": "edge", "playbook": s.playbook("site", rawPlay("tf:edge", "true")),
		"inventory":        map[string]vars{"web1": hostVars(web1), "web2": hostVars(web2)},
		"onboard_playbook": s.playbook("onboard", rawPlay("all", "true")),
		"destroy_playbook": s.playbook("leave", rawPlay("all", leave.count())),
		"ssh_identities":   []string{s.lab.Key().Path},
	}
	r.provision(a)
	r.apply()
	s.holds(len(s.pins()) == 2, "both hosts are pinned", s.pins())

	if err := web2.Close(); err != nil {
		t.Fatal(err)
	}
	r.holdsEmpty("when a host is gone")
	r.provision(a.with(attrs{"inventory": map[string]vars{"web1": hostVars(web1)}}))
	done := r.actions()
	pins := s.pins()
	s.holds(done[address] == "update" && len(pins) == 1 && pins[0].Host == web1.Addr(), "without it the resource is updated, and its pin is retired", done, pins)
	leave.ran(0)

	s.playbook("site", rawPlay("tf:edge", play.line()))
	c := r.spawnApply()
	play.await(1)
	c.signal(syscall.SIGINT)
	c.wait()
	out := r.ok("destroy", "-auto-approve")
	run := s.run(string(s.runIDs("edge")[2]))
	s.holds(run.State == orchestrator.RunCancelled, "the live run is cancelled first", run, out)
	leave.ran(1)
	leaves := s.leaves()
	s.holds(len(leaves) == 1 && leaves[0].State == orchestrator.JobSucceeded && !leaves[0].CreatedAt.Before(run.FinishedAt),
		"the leave play runs once, after it", leaves, run.FinishedAt)
	view := jsonOf[rpc.InventoryView](s, "inventory", "show", "edge")
	s.holds(len(view.Hosts) == 0 && view.Published == rpc.PublishedAgrees, "the inventory is published empty", view)
	known := s.ok("host", "known-hosts").stdout
	s.holds(len(s.pins()) == 0 && !strings.Contains(known, fmt.Sprintf("\n%s ", web1.Addr())), "the pins are retired", known)
	play.ran(1)
	s.assertClean()
}
