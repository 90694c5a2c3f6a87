package ledger

import (
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

func cancelledOutcome() orchestrator.Outcome {
	return orchestrator.Outcome{Failure: &orchestrator.Failure{Code: orchestrator.CodeCancelled, Message: "stopped in order"}}
}

func TestCancelEndsAWaitingRunAtOnceAndLetsTheNextBegin(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	released, queued, next := submitRun(t, l, "edge"), submitRun(t, l, "edge"), submitRun(t, l, "edge")
	for _, r := range []orchestrator.Run{queued, released} {
		got := must(l.CancelRun(t.Context(), r.ID, false, tester))(t)
		if got.State != orchestrator.RunCancelled {
			t.Errorf("run %s is %s", r.ID, got.State)
		}
		wantSteps(t, l, r.ID, "cancelled: cancelled cancelled cancelled cancelled")
	}
	jobs := must(l.Jobs(t.Context(), orchestrator.JobFilter{Run: released.ID}))(t)
	if len(jobs) != 1 || jobs[0].State != orchestrator.JobCancelled || !strings.Contains(jobs[0].Failure.Message, "tester") {
		t.Errorf("jobs of the cancelled run %+v", jobs)
	}
	if j := claim(t, l); j.Run != next.ID {
		t.Errorf("claimed %+v, want the next run's", j)
	}
	_, err := l.CancelRun(t.Context(), queued.ID, false, tester)
	wantCode(t, err, orchestrator.CodeConflict, "was cancelled already")
}

func TestCancelAsksARunningStepAndForceMayBeAdded(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	run := submitRun(t, l, "edge")
	j := claim(t, l)
	for i, force := range []bool{false, false, true, false} {
		must(l.CancelRun(t.Context(), run.ID, force, tester))(t)
		got := must(l.Job(t.Context(), j.ID))(t)
		if !got.CancelRequested || got.CancelForce != (i >= 2) || got.State != orchestrator.JobRunning {
			t.Errorf("after request %d: %+v", i, got)
		}
	}
	var asked int
	for _, e := range must(l.Events(t.Context(), orchestrator.EventFilter{Job: j.ID}))(t) {
		if e.Kind == orchestrator.EventJobCancelRequested {
			asked++
		}
	}
	if asked != 2 {
		t.Errorf("%d cancel requests on record, want 2: the first, and the one with force", asked)
	}
	wantSteps(t, l, run.ID, "running: running blocked blocked blocked")
	finish(t, l, j, cancelledOutcome())
	wantSteps(t, l, run.ID, "cancelled: cancelled cancelled cancelled cancelled")
	claimNothing(t, l)
}

func TestAStepThatSucceedsDespiteACancelEndsTheRun(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	run := submitRun(t, l, "edge")
	j := claim(t, l)
	must(l.CancelRun(t.Context(), run.ID, false, tester))(t)
	finish(t, l, j, orchestrator.Outcome{})
	wantSteps(t, l, run.ID, "cancelled: succeeded cancelled cancelled cancelled")
	claimNothing(t, l)
}

func TestAnInterruptedJobThatWasToEndIsCancelled(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	run := submitRun(t, l, "edge")
	j := claim(t, l)
	must(l.CancelJob(t.Context(), j.ID, false, tester))(t)
	got := must(l.InterruptJob(t.Context(), j.ID, j.Attempt.Token, "crash", true))(t)
	if got.State != orchestrator.JobCancelled {
		t.Errorf("job is %s", got.State)
	}
	wantSteps(t, l, run.ID, "cancelled: cancelled cancelled cancelled cancelled")
}

func TestCancelJobOfAStepTakesTheRunWithIt(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	run := submitRun(t, l, "edge")
	got := must(l.CancelJob(t.Context(), must(l.Run(t.Context(), run.ID))(t).Steps[0].Job, false, tester))(t)
	if got.State != orchestrator.JobCancelled {
		t.Errorf("job is %s", got.State)
	}
	wantSteps(t, l, run.ID, "cancelled: cancelled cancelled cancelled cancelled")
	_, err := l.CancelJob(t.Context(), got.ID, false, tester)
	wantCode(t, err, orchestrator.CodeConflict, "was cancelled already")
}

func TestCancelJobStandalone(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	running := submitJob(t, l, orchestrator.JobWorkspaceApply, "edge")
	waiting := submitJob(t, l, orchestrator.JobHostOnboard, "edge")
	j := claim(t, l)
	if got := must(l.CancelJob(t.Context(), waiting.ID, false, tester))(t); got.State != orchestrator.JobCancelled {
		t.Errorf("queued job is %s", got.State)
	}
	if got := must(l.CancelJob(t.Context(), running.ID, true, tester))(t); got.State != orchestrator.JobRunning || !got.CancelForce {
		t.Errorf("running job is %+v", got)
	}
	finish(t, l, j, cancelledOutcome())
	if turns := must(l.Turns(t.Context(), "edge"))(t); len(turns) != 0 {
		t.Errorf("turns %v are open", turns)
	}
}
