//go:build long

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// A standalone apply that a crash cut short waits for a person. Another one,
// whose tofu alone was killed, leaves a create that the state lacks: that bars
// the first one's repetition, too, until a person accepts the loss.
func TestLongLostCreateOfAStandaloneApplyIsAccepted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	leave, slow := s.gate("leave"), s.gate("slow")
	dir := s.infra("edge", thisMachine(), leaving("old", "true", 1))
	s.ok("workspace", "apply", "edge", "--wait")

	s.infra("edge", thisMachine(), leaving("old", leave.line(), 0))
	first := s.spawn("workspace", "apply", "edge", "--wait")
	leave.await(1)
	s.crashEverything()
	if r := first.wait(); r.code != 1 || !strings.Contains(r.stdout, "jobs redrive") {
		t.Errorf("the client that waited through the crash: %s", r)
	}
	j := jsonOf[[]orchestrator.Job](s, "jobs", "list")[0]
	if j.State != orchestrator.JobInterrupted || j.RedrivenBy != "" || !strings.Contains(j.Failure.Hint, "jobs redrive") {
		t.Fatalf("the job is %s, redriven by %q: %+v", j.State, j.RedrivenBy, j.Failure)
	}
	s.assertClean()

	leave.open()
	s.infra("edge", thisMachine(), resource("slow", slow.line()))
	second := s.spawn("workspace", "apply", "edge", "--wait")
	slow.await(1)
	s.supervised().Tool.kill(t)
	if r := second.wait(); r.code != 1 || !strings.Contains(r.stdout, "terraform_data.slow") || !strings.Contains(r.stdout, "import") {
		t.Errorf("the killed tofu: %s", r)
	}
	s.assertClean()
	slow.ran(1)
	s.fails(4, []string{"terraform_data.slow", "--accept-lost"}, "workspace", "apply", "edge")
	s.fails(4, []string{"terraform_data.slow"}, "jobs", "redrive", string(j.ID))

	slow.open()
	s.ok("workspace", "apply", "edge", "--accept-lost", "--wait")
	slow.ran(2)
	if state := s.tofu(dir, "state", "list", "-no-color"); !strings.Contains(state, "terraform_data.slow") {
		t.Errorf("the state lacks what the apply made: %s", state)
	}
	if kinds := s.kinds("--security"); !slices.Contains(kinds, orchestrator.EventLostAccepted) {
		t.Errorf("no security event says that the loss was accepted: %v", kinds)
	}

	s.ok("jobs", "redrive", string(j.ID), "--wait")
	j = s.job(string(j.ID))
	if again := s.job(string(j.RedrivenBy)); again.Redrives != j.ID || again.State != orchestrator.JobSucceeded || again.Attempt.Number != 2 {
		t.Errorf("the redriven job: %+v", again)
	}
	if same := strings.TrimSpace(s.ok("jobs", "redrive", string(j.ID)).stdout); same != string(j.RedrivenBy) {
		t.Errorf("asked again to redrive, the answer is %s and not %s", same, j.RedrivenBy)
	}
	s.assertClean()
}

// The supervisor alone dies, then another with its daemon. Each time tofu is
// told to end and saves its state, so the next attempt goes on where it was.
func TestLongLostSupervisorEndsTofuInOrder(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	made, slow := s.gate("made"), s.gate("slow")
	dir := s.infra("edge", thisMachine(),
		resource("made", made.count()), resource("slow", slow.line(), "terraform_data.made"))
	run := s.submit("edge", s.playbook("site", rawPlay("tf:edge", "true")))
	slow.await(1)
	s.supervised().Supervisor.kill(t)
	slow.await(2)
	if state := s.tofu(dir, "state", "list", "-no-color"); !strings.Contains(state, "terraform_data.made") {
		t.Errorf("the first attempt's state was not saved: %s", state)
	}
	running := s.supervised()
	s.daemon.kill()
	running.Supervisor.kill(t)
	if !running.Tool.alive() {
		t.Error("tofu died with its supervisor")
	}
	s.start()
	slow.await(3)
	slow.open()
	s.wantAttempts(s.awaitRun(string(run)), [4]int{3, 1, 1, 1}, [4]int{2, 0, 0, 0})
	made.ran(1)
	if lost := s.lost("edge"); len(lost) != 0 {
		t.Errorf("suspected: %+v", lost)
	}
	s.assertClean()
}
