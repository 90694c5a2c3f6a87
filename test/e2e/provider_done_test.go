package e2e

import (
	"path/filepath"
	"syscall"
	"testing"
)

// TestGateProviderKilledThenDone: a run that ends while no tofu follows it is the
// answer to the next apply.
func TestGateProviderKilledThenDone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	r := s.root("main")
	play := s.gate("play")
	r.provision(attrs{"workspace": "edge", "playbook": s.playbook("site", rawPlay("tf:edge", play.line())), "inventory": thisMachine()})
	c := r.spawnApply()
	play.await(1)
	c.signal(syscall.SIGKILL)
	c.wait()
	play.open()
	s.awaitRun("edge")
	r.apply()
	s.holdsRuns("edge", 1, "a run that succeeded after its tofu was killed is the answer")
	play.ran(1)
	r.holdsEmpty("after it")
}

// TestGateProviderResumedByHand: a create that failed, and that a person has
// finished since, is adopted by the next apply.
func TestGateProviderResumedByHand(t *testing.T) {
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
