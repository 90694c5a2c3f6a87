package e2e

import (
	"strings"
	"syscall"
	"testing"
)

// TestGateProviderTimeout: a create that is given too little time fails, and so
// it is tainted. Its run goes on; whether it still does or has ended when tofu
// is asked again, the next apply takes it up.
func TestGateProviderTimeout(t *testing.T) {
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
