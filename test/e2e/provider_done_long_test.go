//go:build long

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestLongGateProviderTimeout: a create that is given too little time fails, and so
// it is tainted. Its run goes on; whether it still does or has ended when tofu
// is asked again, the next apply takes it up.
func TestLongGateProviderTimeout(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	r := s.root("main")
	play, leave := s.gate("play"), s.gate("leave")
	a := attrs{
		"workspace": "edge", "playbook": s.playbook("site", rawPlay("tf:edge", play.line())), "inventory": thisMachine(),
		"destroy_playbook": s.playbook("leave", rawPlay("all", leave.count())), "timeouts": vars{"create": "2s"},
	}
	r.provision(a)
	r.applyFails("did not end within 2s", "goes on by itself")
	out := r.applyFails("did not end within 2s", "goes on by itself")
	s.holds(!strings.Contains(out.stdout, "only forgotten"), "replacing a tainted resource gives no false alarm", out)
	run := s.holdsRuns("edge", 1, "the create that replaces a tainted one follows the same run")
	play.open()
	s.awaitRun(string(run))
	r.apply()
	s.holdsRuns("edge", 1, "a run that succeeded meanwhile is the answer")
	play.ran(1)
	leave.ran(0)
	r.holdsEmpty("after it")
}

// TestLongGateProviderResumedByHand: a create that failed, and that a person has
// finished since, is adopted by the next apply.
func TestLongGateProviderResumedByHand(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	r := s.root("main")
	play, leave := s.gate("play"), s.gate("leave")
	r.provision(attrs{
		"workspace": "edge", "playbook": s.playbook("site", rawPlay("tf:edge", needs(filepath.Join(s.dir, "disk")), play.count())),
		"inventory": thisMachine(), "destroy_playbook": s.playbook("leave", rawPlay("all", leave.count())),
	})
	r.applyFails("failed at step 4, ansible-play", "no disk here")
	s.writeFile("disk", "")
	s.ok("provision", "resume", "edge", "--wait")
	done := r.actions()
	run := s.holdsRuns("edge", 1, "the run that a person resumed is the answer")
	p, _ := r.state()
	s.holds(done[address] == "replace" && !p.Tainted && p.Values.Status == "succeeded" && p.Values.RunID == string(run),
		"the next apply records it, in place of the resource that failed", done, p)
	s.wantAttempts(s.run(string(run)), [4]int{0, 1, 1, 2}, [4]int{})
	play.ran(1)
	leave.ran(0)
	r.holdsEmpty("after it")
	r.ok("destroy", "-auto-approve")
	leave.ran(1)
	s.assertClean()
}
