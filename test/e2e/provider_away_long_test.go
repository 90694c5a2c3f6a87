//go:build long

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// TestLongGateProviderAway: plan, refresh and destroy do without the daemon, and a
// daemon that has lost its data makes nothing anew.
func TestLongGateProviderAway(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	r := s.root("main")
	play := s.gate("play")
	a := attrs{"workspace": "edge", "playbook": s.playbook("site", rawPlay("all", play.count())), "inventory": thisMachine()}
	r.provision(a)
	r.apply()
	before, _ := r.state()

	s.stop()
	out := r.holdsEmpty("without the daemon")
	r.says(out.stdout+out.stderr, "Warning: Run "+before.Values.RunID+" could not be refreshed", "The state stays as it is.", "exocomp serve")
	r.ok("apply", "-refresh-only", "-auto-approve")
	kept, found := r.state()
	s.holds(found && kept.Values.RunID == before.Values.RunID && kept.Values.Status == "succeeded", "a refresh without the daemon keeps the state", kept)
	leaving := a.with(attrs{"destroy_playbook": a["playbook"]})
	r.provision(leaving)
	r.applyFails("Workspace edge could not be provisioned", "exocomp serve")
	kept, found = r.state()
	s.holds(found && !kept.Tainted, "an update without the daemon fails and taints nothing", kept)

	// the daemon comes back with another data directory
	if err := os.Rename(s.data(), filepath.Join(s.dir, "lost")); err != nil {
		t.Fatal(err)
	}
	s.start()
	r.provision(a)
	out = r.apply()
	r.says(out.stdout+out.stderr, "No changes.", "Warning: The daemon does not know run "+before.Values.RunID, "nothing is created again")
	kept, found = r.state()
	s.holds(found && kept.Values.RunID == before.Values.RunID, "an apply where the daemon knows nothing of it keeps the state", kept)
	s.holdsRuns("edge", 0, "and makes no run")
	play.ran(1)

	r.provision(a.with(attrs{"triggers": vars{"again": "1"}}))
	r.apply()
	s.holdsRuns("edge", 1, "the next change runs the chain anew")
	play.ran(2)

	s.stop()
	out = r.ok("destroy", "-auto-approve")
	r.says(out.stdout+out.stderr, "Warning: Workspace edge is only forgotten", "The daemon is away")
	_, found = r.state()
	s.holds(!found, "a destroy without the daemon and without a leave play forgets the resource")

	// what the daemon has kept is imported
	s.start()
	other := s.root("other")
	other.provision(a)
	other.ok("import", address, "edge")
	done := other.actions()
	s.holds(done[address] == "update", "the first apply of an import records", done)
	s.holdsRuns("edge", 1, "and makes no run")
	play.ran(2)
	other.holdsEmpty("after an import and its first apply")

	other.provision(a.with(attrs{"workspace": "rim"}))
	done = other.actions()
	s.holds(done[address] == "replace", "another workspace name replaces the resource", done)
	p, _ := other.state()
	s.holds(p.Values.ID == "rim" && p.Values.Status == "succeeded", "and provisions under that name", p)
	view := jsonOf[rpc.InventoryView](s, "inventory", "show", "edge")
	s.holds(len(view.Hosts) == 0 && !strings.Contains(s.ok("inventory", "show", "edge", "--content").stdout, "here"),
		"the inventory under the old name is published empty", view)
	s.assertClean()
}
