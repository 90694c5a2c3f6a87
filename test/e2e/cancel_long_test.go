//go:build long

package e2e

import (
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// A drain ends what runs in order, waits for that, and starts nothing, also not
// after a restart, until it is over. It costs no run: what it cut short is done
// again.
func TestLongCancelByDrain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	slow := s.gate("slow")
	s.infra("edge", thisMachine(), resource("slow", slow.line()))
	site := s.playbook("site", rawPlay("tf:edge", "true"))
	first := string(s.submit("edge", site))
	slow.await(1)
	s.ok("drain")
	s.wantStates(s.run(first), orchestrator.RunRunning, orchestrator.StepReady, blocked, blocked, blocked)
	s.assertClean()

	slow.open()
	second := s.spawn("provision", "run", "edge", site, "--wait")
	s.awaitEvent("the second run", func(e orchestrator.Event) bool {
		return e.Kind == orchestrator.EventRunSubmitted && string(e.Run) != first
	})
	s.ok("drain") // again: nothing to do
	s.stop()
	s.start()
	s.wantStates(s.run(first), orchestrator.RunRunning, orchestrator.StepReady, blocked, blocked, blocked)
	s.wantStates(s.run("edge"), orchestrator.RunQueued, blocked, blocked, blocked, blocked)
	slow.ran(1)
	s.ok("drain", "--off")
	if r := second.wait(); r.code != 0 {
		t.Errorf("after the drain: %s", r)
	}
	s.wantAttempts(s.run(first), [4]int{2, 1, 1, 1}, [4]int{})
	slow.ran(2) // the second run has nothing to change
	s.assertClean()
}

// A task that takes no notice of SIGTERM, below an ansible-playbook that waits
// for it, is ended at once by --force; so is tofu, and then what it was making
// is suspected to be lost.
func TestLongCancelByForceDoesNotWait(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	slow, play := s.gate("slow"), s.gate("play")
	s.infra("edge", thisMachine())
	site := s.playbook("site", rawPlay("tf:edge", "trap '' TERM INT HUP; "+play.line()))
	run := string(s.submit("edge", site))
	play.await(1)
	s.ok("provision", "cancel", "edge", "--force", "--wait")
	s.wantStates(s.run(run), orchestrator.RunCancelled, succeeded, succeeded, succeeded, cancelled)
	s.assertClean()

	s.infra("edge", thisMachine(), resource("slow", slow.line()))
	job := s.ok("workspace", "apply", "edge").stdout
	slow.await(1)
	s.ok("jobs", "cancel", strings.TrimSpace(job), "--force")
	if j := s.awaitJob(job); !strings.Contains(j.Failure.Message, "terraform_data.slow") {
		t.Errorf("the job is %s and does not name what may be lost: %+v", j.State, j.Failure)
	}
	if lost := s.lost("edge"); len(lost) != 1 {
		t.Errorf("suspected: %+v", lost)
	}
	s.assertClean()
	slow.ran(1)
}

// What a person cancelled stays cancelled when the daemon dies before the tool
// has ended, be it alone or with everything.
func TestLongCancelSurvivesACrash(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	play := s.gate("play")
	s.infra("edge", thisMachine())
	site := s.playbook("site", rawPlay("tf:edge", "trap '' TERM INT HUP; "+play.line()))
	for n, crash := range []func(){func() { s.crash() }, s.crashEverything} {
		run := string(s.submit("edge", site))
		play.await(n + 1)
		s.ok("provision", "cancel", run)
		crash()
		s.wantStates(s.awaitRun(run), orchestrator.RunCancelled, succeeded, succeeded, succeeded, cancelled)
		play.ran(n + 1)
		s.assertClean()
	}
}

// SIGTERM ends the daemon at once and leaves a running play alone; the next
// daemon adopts it. Nothing of that is a crash or another attempt, not even in
// the SSH wait, which the daemon does itself.
func TestLongCancelOfTheDaemonLeavesJobsAlone(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	s.start()
	c := s.stoppingChain(func(g gate) string { return resource("slow", g.line()) })
	c.apply.await(1)
	running := s.supervised()
	s.stop()
	if s.daemon.err != nil {
		t.Errorf("the daemon ended with %v", s.daemon.err)
	}
	if !running.Supervisor.alive() || !running.Tool.alive() {
		t.Error("the tool did not outlive the daemon")
	}
	s.start()
	s.awaitAdopted(c.run, orchestrator.StepTofuApply, 1)
	c.apply.open()
	s.awaitStep(c.run, orchestrator.StepSSHWait, 1)
	s.stop()
	s.start()
	if err := c.host.StartSSHD(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.onboard.open()
	c.play.open()
	s.wantAttempts(s.awaitRun(string(c.run)), [4]int{1, 1, 1, 1}, [4]int{})
	c.apply.ran(1)
	c.onboard.ran(1)
	c.play.ran(1)
	s.assertClean()
}
