package e2e

import (
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
