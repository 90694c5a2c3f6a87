package ledger

import (
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

func submitHandoff(t *testing.T, l *Ledger, workspace string) orchestrator.Run {
	t.Helper()
	n := newRun(workspace)
	n.Kind, n.Spec.SSHWait = orchestrator.RunHandoff, 0
	run, _, err := l.SubmitRun(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func takeOver(t *testing.T, l *Ledger, run orchestrator.Run, from orchestrator.StepKind) (orchestrator.Run, error) {
	t.Helper()
	return l.ResumeRun(t.Context(), orchestrator.ResumeRun{Run: run.ID, Spec: run.Spec, By: tester, From: from})
}

// reporting succeeds with a report.
func reporting(summary string) orchestrator.Outcome {
	return orchestrator.Outcome{Report: &orchestrator.Report{Summary: summary}}
}

func TestAHandoffIsAnApplyAndAPlay(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	run := submitHandoff(t, l, "edge")
	wantSteps(t, l, run.ID, "running: ready blocked")
	for i, kind := range []orchestrator.StepKind{orchestrator.StepTofuApply, orchestrator.StepAnsiblePlay} {
		if j := claim(t, l); j.Step != i+1 || j.StepKind != kind {
			t.Fatalf("claimed %+v, want step %d %s", j, i+1, kind)
		} else {
			finish(t, l, j, orchestrator.Outcome{})
		}
	}
	wantSteps(t, l, run.ID, "succeeded: succeeded succeeded")
	n := newRun("edge")
	n.Kind, n.Spec.OnboardPlaybook = orchestrator.RunHandoff, new(playbook("b"))
	_, _, err := l.SubmitRun(t.Context(), n)
	wantCode(t, err, orchestrator.CodeInvalid, "onboards nobody", "does not wait")
}

// Nothing was done yet for the hosts of a handoff's play: a corrected inventory is
// what its failure asks for.
func TestAHandoffsPlayIsResumedWithTheNewestInventory(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	run := submitHandoff(t, l, "edge")
	finish(t, l, claim(t, l), captured(t, wrongHosts))
	finish(t, l, claim(t, l), failure())
	submitJob(t, l, orchestrator.JobWorkspaceApply, "edge")
	next := captured(t, rightHosts)
	finish(t, l, claim(t, l), next)
	resumed := must(l.ResumeRun(t.Context(), orchestrator.ResumeRun{Run: run.ID, Spec: run.Spec, By: tester}))(t)
	if resumed.Inventory != next.Inventory.Digest {
		t.Errorf("the run requires %s, want the newest, %s", resumed.Inventory, next.Inventory.Digest)
	}
}

func TestARunTakesOverWhatAnotherDid(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	first := submitRun(t, l, "edge")
	inv := captured(t, rightHosts)
	inv.Report = reporting("captured").Report
	for _, o := range []orchestrator.Outcome{inv, reporting("ready"), reporting("onboarded"), reporting("played")} {
		finish(t, l, claim(t, l), o)
	}
	first = must(l.Run(t.Context(), first.ID))(t)

	second := must(takeOver(t, l, first, orchestrator.StepHostOnboard))(t)
	wantSteps(t, l, second.ID, "running: succeeded succeeded ready blocked")
	for i, s := range second.Steps {
		taken := i < 2
		if (s.TakenFrom == first.ID) != taken || s.Attempts != 0 && taken || taken && s.Report.Summary != first.Steps[i].Report.Summary {
			t.Errorf("step %d of the second run: %+v", i+1, s)
		}
	}
	if second.ID == first.ID || second.Inventory != first.Inventory || second.Kind != first.Kind {
		t.Errorf("the second run %+v of %+v", second, first)
	}
	if j := claim(t, l); j.Step != 3 || j.Attempt.Number != 1 {
		t.Fatalf("claimed %+v, want step 3", j)
	} else {
		finish(t, l, j, failure())
	}
	wantSteps(t, l, first.ID, "succeeded: succeeded succeeded succeeded succeeded")
	next := must(takeOver(t, l, second, orchestrator.StepHostOnboard))(t)
	if next.Steps[0].TakenFrom != first.ID || next.Steps[2].TakenFrom != "" {
		t.Errorf("the third run names %s and %s, want the run that did it", next.Steps[0].TakenFrom, next.Steps[2].TakenFrom)
	}
	finish(t, l, claim(t, l), orchestrator.Outcome{})
	finish(t, l, claim(t, l), orchestrator.Outcome{})
	wantSteps(t, l, next.ID, "succeeded: succeeded succeeded succeeded succeeded")
}

func TestATakeOverIsRefused(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	run := submitRun(t, l, "edge")
	refused := func(from orchestrator.StepKind, code orchestrator.Code, parts ...string) {
		t.Helper()
		_, err := takeOver(t, l, run, from)
		wantCode(t, err, code, parts...)
	}
	refused("lunch", orchestrator.CodeInvalid, `no step "lunch"`, "tofu-apply, ssh-wait, host-onboard, ansible-play")
	refused(orchestrator.StepSSHWait, orchestrator.CodeConflict, "is running")
	finish(t, l, claim(t, l), captured(t, wrongHosts))
	finish(t, l, claim(t, l), failure())
	refused(orchestrator.StepAnsiblePlay, orchestrator.CodeConflict, "step 2 ssh-wait", "is failed", "--from ssh-wait")
	both := orchestrator.ResumeRun{Run: run.ID, Spec: run.Spec, From: orchestrator.StepSSHWait, FailedOnly: true}
	_, err := l.ResumeRun(t.Context(), both)
	wantCode(t, err, orchestrator.CodeInvalid, "--failed-only")

	apply := submitJob(t, l, orchestrator.JobWorkspaceApply, "edge")
	refused(orchestrator.StepSSHWait, orchestrator.CodeConflict, string(apply.ID))
	finish(t, l, claim(t, l), captured(t, rightHosts))
	refused(orchestrator.StepSSHWait, orchestrator.CodeRefused, "has changed", "exocomp provision run edge /src/site.yml")
	submitJob(t, l, orchestrator.JobWorkspaceApply, "edge")
	finish(t, l, claim(t, l), captured(t, wrongHosts))

	newer := must(takeOver(t, l, run, orchestrator.StepTofuApply))(t) // which takes nothing over
	wantSteps(t, l, newer.ID, "running: ready blocked blocked blocked")
	finish(t, l, claim(t, l), failure())
	refused(orchestrator.StepSSHWait, orchestrator.CodeConflict, string(newer.ID))
}

// A cancelled run cannot go on, but what it did is there.
func TestACancelledRunIsTakenOver(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	run := submitHandoff(t, l, "edge")
	finish(t, l, claim(t, l), captured(t, rightHosts))
	must(l.CancelRun(t.Context(), run.ID, false, tester))(t)
	next := must(takeOver(t, l, run, orchestrator.StepAnsiblePlay))(t)
	wantSteps(t, l, next.ID, "running: succeeded ready")
	_, err := takeOver(t, l, next, orchestrator.StepSSHWait)
	wantCode(t, err, orchestrator.CodeInvalid, "a handoff has no step", "tofu-apply, ansible-play")
}

// What may be lost bars an apply, and no other step.
func TestATakeOverAppliesNothing(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	run := submitRun(t, l, "edge")
	finish(t, l, claim(t, l), captured(t, rightHosts))
	finish(t, l, claim(t, l), failure())
	submitJob(t, l, orchestrator.JobWorkspaceApply, "edge")
	o := failure()
	o.Lost = []orchestrator.LostCreate{{Address: "a.b"}}
	finish(t, l, claim(t, l), o)
	_, err := takeOver(t, l, run, orchestrator.StepTofuApply)
	wantCode(t, err, orchestrator.CodeRefused, "a.b")
	must(takeOver(t, l, run, orchestrator.StepSSHWait))(t)
	if w := must(l.Workspace(t.Context(), "edge"))(t); len(w.Lost) != 1 {
		t.Errorf("lost is %+v, want what it was", w.Lost)
	}
}

// The run that takes over is the resource's from then on: its next apply does not
// begin a chain of its own.
func TestATakeOverTakesItsPlaceWithTheResource(t *testing.T) {
	l := openTest(t)
	r := newResource(t, l, "a")
	e := r.handing("a", "web1@192.0.2.1")
	first := r.ensure(e).Run
	r.failAt(4)
	_, err := takeOver(t, l, first, orchestrator.StepTofuApply)
	wantCode(t, err, orchestrator.CodeRefused, "tofu apply")
	next := must(takeOver(t, l, first, orchestrator.StepAnsiblePlay))(t)
	if !next.Resource || !next.AppliedByCaller() {
		t.Errorf("the run that takes over: resource %v, applied by %s", next.Resource, next.Steps[0].Origin)
	}
	r.through()
	if got := r.ensure(e).Run; got.ID != next.ID || got.State != orchestrator.RunSucceeded {
		t.Errorf("the resource is answered with %s (%s), want %s", got.ID, got.State, next.ID)
	}
}

// An import answers with a provision or makes one: a handoff onboards nobody.
func TestAHandoffIsNoAnswerToAResource(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	run := submitHandoff(t, l, "edge")
	finish(t, l, claim(t, l), orchestrator.Outcome{})
	finish(t, l, claim(t, l), orchestrator.Outcome{})
	r := newResource(t, l, "a")
	e := r.applying("a")
	e.Claim = true
	if got := r.ensure(e).Run; got.ID == run.ID || got.Kind != orchestrator.RunProvision {
		t.Errorf("answered with %s %s", got.Kind, got.ID)
	}
}

// Invariant 1 of steps that nobody runs: only what an older run of the workspace
// did is taken over.
func TestInvariant1NothingIsTakenOverThatNobodyDid(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	addWorkspace(t, l, "core")
	failed := submitRun(t, l, "edge")
	finish(t, l, claim(t, l), failure())
	older := submitRun(t, l, "edge")
	finish(t, l, claim(t, l), orchestrator.Outcome{})
	finish(t, l, claim(t, l), failure())
	other := submitRun(t, l, "core")
	finish(t, l, claim(t, l), orchestrator.Outcome{})
	finish(t, l, claim(t, l), failure())
	submitRun(t, l, "edge") // holds the workspace
	run := submitRun(t, l, "edge")
	for name, c := range map[string]struct {
		from orchestrator.RunID
		kind orchestrator.StepKind
	}{
		"of itself":            {run.ID, orchestrator.StepTofuApply},
		"of another workspace": {other.ID, orchestrator.StepTofuApply},
		"that failed":          {failed.ID, orchestrator.StepTofuApply},
		"of another kind":      {older.ID, orchestrator.StepSSHWait},
	} {
		if err := succeedBy(t, l, run.ID, c.kind, c.from); err == nil || !strings.Contains(err.Error(), "succeeds without running") {
			t.Errorf("a step %s: %v, want a refusal by the schema", name, err)
		}
	}
	if err := succeedBy(t, l, run.ID, orchestrator.StepTofuApply, older.ID); err != nil {
		t.Error(err)
	}
}

// succeedBy makes step 1 of a run, past the code, one that another run did.
func succeedBy(t *testing.T, l *Ledger, run orchestrator.RunID, kind orchestrator.StepKind, from orchestrator.RunID) error {
	t.Helper()
	return l.write(t.Context(), "test", func(tx *tx) error {
		if err := tx.exec(t.Context(), `DELETE FROM step WHERE run_id = ? AND seq = 1`, run); err != nil {
			return err
		}
		err := tx.insertStep(t.Context(), run, orchestrator.Step{
			Seq: 1, Kind: kind, State: orchestrator.StepBlocked, Origin: orchestrator.OriginRun, TakenFrom: from,
		})
		if err != nil {
			return err
		}
		return tx.exec(t.Context(), `UPDATE step SET state = 'succeeded', finished_at = 1 WHERE run_id = ? AND seq = 1`, run)
	})
}
