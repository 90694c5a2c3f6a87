package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

// wantStates fails the test unless the run and its steps are in these states.
func (s *site) wantStates(run orchestrator.Run, state orchestrator.RunState, steps ...orchestrator.StepState) {
	s.t.Helper()
	got := states(run)
	same := run.State == state && len(got) == len(steps)
	for i := range steps {
		same = same && got[i] == steps[i]
	}
	if !same {
		s.t.Errorf("run is %s, its steps %v; want %s, %v; %+v", run.State, got, state, steps, run.FailedStep())
	}
}

const (
	succeeded = orchestrator.StepSucceeded
	cancelled = orchestrator.StepCancelled
	blocked   = orchestrator.StepBlocked
)

// Tofu is cancelled between two resources, a play in its task, and each time
// the workspace is free for the next. What tofu had made is in its state. A
// queued run is cancelled at once and never starts.
func TestCancelEndsEveryToolInOrder(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	made, slow, play := s.gate("made"), s.gate("slow"), s.gate("play")
	dir := s.infra("edge", thisMachine(),
		resource("made", made.count()), resource("slow", slow.line(), "terraform_data.made"))
	site := s.playbook("site", rawPlay("tf:edge", play.line()))

	first := string(s.submit("edge", site))
	slow.await(1)
	second := string(s.submit("edge", site))
	s.ok("provision", "cancel", second)
	s.wantStates(s.run(second), orchestrator.RunCancelled, cancelled, cancelled, cancelled, cancelled)
	s.ok("provision", "cancel", first, "--wait")
	run := s.run(first)
	s.wantStates(run, orchestrator.RunCancelled, cancelled, cancelled, cancelled, cancelled)
	if f := run.Steps[0].Failure; !strings.Contains(f.Message, "saved its state") {
		t.Errorf("step 1 ended by %+v", f)
	}
	if state := s.tofu(dir, "state", "list", "-no-color"); !strings.Contains(state, "terraform_data.made") {
		t.Errorf("the state was not saved: %s", state)
	}
	if lost := s.lost("edge"); len(lost) != 0 {
		t.Errorf("suspected: %+v", lost)
	}
	s.assertClean()

	slow.open()
	third := string(s.submit("edge", site))
	play.await(1)
	made.ran(1)
	job := step(s.run(third), orchestrator.StepAnsiblePlay).Job
	s.ok("jobs", "cancel", string(job))
	s.wantStates(s.awaitRun(third), orchestrator.RunCancelled, succeeded, succeeded, succeeded, cancelled)
	if j := s.job(string(job)); j.State != orchestrator.JobCancelled {
		t.Errorf("the play's job is %s", j.State)
	}
	s.assertClean()
	s.fails(4, []string{"cancelled"}, "provision", "cancel", third)
	s.fails(4, nil, "provision", "resume", third)

	play.open()
	s.converge("edge", site)
	play.ran(2)
	s.assertClean()
}

// Who waits for a run is served through a crash of the daemon, may leave, and
// may give up; the run goes on.
func TestCancelOfAWaitLeavesTheRunAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	play := s.gate("play")
	s.infra("edge", thisMachine())
	site := s.playbook("site", rawPlay("tf:edge", play.line()))
	waits := s.spawn("provision", "run", "edge", site, "--wait")
	play.await(1)
	run := s.run("edge")
	job := string(step(run, orchestrator.StepAnsiblePlay).Job)

	leaves := s.spawn("jobs", "logs", "-f", job)
	other := s.spawn("provision", "run", "edge", site, "--wait")
	select {
	case <-other.stderr.seen("run run_"):
	case <-time.After(patience):
		t.Fatalf("the second client says nothing: %s", other.stderr.String())
	}
	if err := other.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if r := other.wait(); r.code != 130 || !strings.Contains(r.stderr, "goes on") || !strings.Contains(r.stderr, "provision logs -f") {
		t.Errorf("interrupted: %s", r)
	}
	queued := s.run("edge")
	if queued.ID == run.ID || queued.State.Final() {
		t.Errorf("the interrupted client's run is %s %s", queued.ID, queued.State)
	}
	s.ok("provision", "cancel", string(queued.ID))
	s.fails(124, []string{"goes on"}, "provision", "run", "edge", site, "--wait-timeout", "500ms")
	s.ok("provision", "cancel", "edge")

	s.crash()
	play.open()
	if r := waits.wait(); r.code != 0 {
		t.Errorf("the client that waited through a crash: %s", r)
	}
	if r := leaves.wait(); r.code != 0 {
		t.Errorf("the client that followed the log through a crash: %s", r)
	}
	if last := s.run(string(run.ID)); last.State != orchestrator.RunSucceeded {
		t.Errorf("the run is %s", last.State)
	}
	play.ran(1)
	s.assertClean()
}
