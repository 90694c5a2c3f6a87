package e2e

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// TestGateProviderDestroy: hosts that the resource handed over are its own. The
// pin of one that leaves the inventory is retired; one that does not answer any
// more is no change of the configuration; in the end a live run is
// cancelled, the leave play runs once, and neither inventory nor pins stay.
func TestGateProviderDestroy(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	web1, web2 := s.host("web1"), s.host("web2")
	s.start()
	r := s.root("main")
	r.env = []string{"TF_LOG_PROVIDER=INFO"}
	leave := s.gate("leave")
	a := attrs{
		"workspace": "edge", "playbook": s.playbook("site", rawPlay("tf:edge", "true")),
		"inventory":        map[string]vars{"web1": hostVars(web1), "web2": hostVars(web2), "here": thisMachine()["here"]},
		"onboard_playbook": s.playbook("onboard", rawPlay("all", "true")),
		"destroy_playbook": s.playbook("leave", rawPlay("here", leave.count())),
		"ssh_identities":   []string{s.lab.Key().Path},
	}
	r.provision(a)
	r.apply()
	s.holds(len(s.pins()) == 2, "the hosts are pinned", s.pins())
	a = a.with(attrs{"inventory": map[string]vars{"web1": hostVars(web1), "here": thisMachine()["here"]}})
	r.provision(a)
	r.apply()
	known := s.read(filepath.Join(s.data(), "known_hosts"))
	s.holds(len(s.pins()) == 1 && strings.Contains(known, web1.Addr()+" ") && !strings.Contains(known, web2.Addr()+" "),
		"the pin of a host that leaves the inventory is retired, and no other", s.pins(), known)
	if err := web1.Close(); err != nil {
		t.Fatal(err)
	}
	r.holdsEmpty("when a host is gone")

	// a live run, which waits for that host
	r.provision(a.with(attrs{"triggers": vars{"again": "1"}}))
	c := r.spawnApply()
	c.follows()
	c.signal(syscall.SIGINT)
	c.wait()
	leave.ran(0)
	out := r.ok("destroy", "-auto-approve")
	run := s.run(string(s.holdsRuns("edge", 3, "three runs there were")))
	s.holds(run.State == orchestrator.RunCancelled, "the live run is cancelled first", run, out)
	leave.ran(1)
	leaves := s.leaves()
	s.holds(len(leaves) == 1 && leaves[0].State == orchestrator.JobSucceeded && !leaves[0].CreatedAt.Before(run.FinishedAt),
		"the leave play runs once, after it", leaves, run.FinishedAt)
	view := jsonOf[rpc.InventoryView](s, "inventory", "show", "edge")
	s.holds(len(view.Hosts) == 0 && view.Published == rpc.PublishedAgrees, "the inventory is published empty", view)
	known = s.read(filepath.Join(s.data(), "known_hosts"))
	s.holds(len(s.pins()) == 0 && !strings.Contains(known, web1.Addr()+" "), "the pins are retired", known)
	s.assertClean()
}
