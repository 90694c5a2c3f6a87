package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// follows waits until the provider has heard from the daemon that the run is in
// its play.
func (c *tofuClient) follows() {
	c.s.t.Helper()
	select {
	case <-c.stderr.seen("state=running"):
	case r := <-c.ended:
		c.s.t.Fatalf("tofu does not follow the run: %s", r)
	case <-time.After(patience):
		c.s.t.Fatalf("tofu does not follow the run: %s", c.stderr)
	}
}

// TestGateProviderInterrupt: one play is stopped at a gate while its tofu is
// killed, interrupted twice, interrupted once, timed out, and the daemon
// restarted and killed under it. All of it is one run, whose play runs once.
func TestGateProviderInterrupt(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	r := s.root("main")
	r.env = []string{"TF_LOG_PROVIDER=INFO"}
	play, leave := s.gate("play"), s.gate("leave")
	a := attrs{
		"workspace": "edge", "playbook": s.playbook("site", rawPlay("tf:edge", play.line())), "inventory": thisMachine(),
		"destroy_playbook": s.playbook("leave", rawPlay("all", leave.count())),
	}
	r.provision(a)

	// only tofu dies: the provider, its child, is left behind
	c := r.spawnApply()
	play.await(1)
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.wait()
	_, found := r.state()
	s.holds(!found, "nothing of the create is in the state of a tofu that was killed")

	c = r.spawnApply()
	c.follows()
	c.signal(syscall.SIGINT)
	c.interrupted()
	c.signal(syscall.SIGINT)
	out := c.wait()
	s.holds(out.code != 0, "two interrupts end tofu at once", out)

	c = r.spawnApply()
	c.follows()
	c.signal(syscall.SIGINT)
	out = c.wait()
	p, found := r.state()
	run := s.holdsRuns("edge", 1, "killed, interrupted twice and once, three applies have made one run")
	s.holds(found && !p.Tainted && p.Values.Status == "running" && p.Values.RunID == string(run), "after one interrupt the state has the run, and is not tainted", p)
	r.says(out.stdout+out.stderr, "Warning: Interrupted; run "+string(run)+" goes on", "exocomp provision status "+string(run))

	r.provision(a.with(attrs{"timeouts": vars{"create": "3s", "update": "3s"}}))
	r.applyFails("Run "+string(run)+" did not end within 3s", "goes on by itself", "exocomp provision status "+string(run))
	p, _ = r.state()
	s.holds(!p.Tainted, "an update that timed out is not tainted", p)

	r.provision(a)
	c = r.spawnApply("-json")
	c.follows()
	s.stop()
	s.start()
	s.crash()
	play.open()
	out = c.wait()
	done := planned(t, out.stdout)
	s.holds(out.code == 0 && done[address] == "update", "an apply survives a restart and a kill of the daemon, and ends as an update", out)
	s.holdsRuns("edge", 1, "all of it is one run")
	play.ran(1)
	leave.ran(0)
	r.holdsEmpty("after it")
	s.assertClean()
}

// interrupted waits until tofu has said that it was interrupted.
func (c *tofuClient) interrupted() {
	c.s.t.Helper()
	c.s.await("that tofu was interrupted", func() bool {
		return strings.Contains(c.stdout.String()+c.stderr.String(), "nterrupt received")
	})
}
