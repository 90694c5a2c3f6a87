package ledger

import (
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// lose makes the workspace's next apply lose two creates.
func lose(t *testing.T, l *Ledger) {
	t.Helper()
	o := failure()
	o.Lost = []orchestrator.LostCreate{{Address: "vm.a", ID: "i-1"}, {Address: "vm.b"}}
	finish(t, l, claim(t, l), o)
}

func TestLostCreatesRefuseEveryApply(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	interrupted := submitJob(t, l, orchestrator.JobWorkspaceApply, "edge") // to be redriven
	j := claim(t, l)
	must(l.InterruptJob(t.Context(), j.ID, j.Attempt.Token, "crash", true))(t)
	run := submitRun(t, l, "edge")
	lose(t, l)

	says := []string{"vm.a", "vm.b", "tofu import 'vm.a' 'i-1'", "tofu import 'vm.b' 'ID'", "--accept-lost", "exocomp workspace refresh edge"}
	_, _, err := l.SubmitRun(t.Context(), newRun("edge"))
	wantCode(t, err, orchestrator.CodeRefused, says...)
	_, err = l.SubmitJob(t.Context(), orchestrator.NewJob{Kind: orchestrator.JobWorkspaceApply, Workspace: "edge"})
	wantCode(t, err, orchestrator.CodeRefused, says...)
	_, err = l.RedriveJob(t.Context(), interrupted.ID, tester)
	wantCode(t, err, orchestrator.CodeRefused, says...)
	_, err = l.ResumeRun(t.Context(), orchestrator.ResumeRun{Run: run.ID, Spec: spec("a"), By: tester})
	wantCode(t, err, orchestrator.CodeRefused, says...)

	// What applies nothing is let through, and so is who accepts the loss.
	for _, n := range []orchestrator.NewJob{
		{Kind: orchestrator.JobWorkspaceApply, Workspace: "edge", Spec: orchestrator.JobSpec{RefreshOnly: true}},
		{Kind: orchestrator.JobHostOnboard, Workspace: "edge"},
		{Kind: orchestrator.JobWorkspaceApply, Workspace: "edge", Spec: orchestrator.JobSpec{AcceptLost: true}},
	} {
		must(l.SubmitJob(t.Context(), n))(t)
		finish(t, l, claim(t, l), orchestrator.Outcome{})
	}
	accept := spec("a")
	accept.AcceptLost = true
	must(l.ResumeRun(t.Context(), orchestrator.ResumeRun{Run: run.ID, Spec: accept, By: tester}))(t)
	finish(t, l, claim(t, l), orchestrator.Outcome{Found: []string{"vm.a", "vm.b"}})
	if w := must(l.Workspace(t.Context(), "edge"))(t); len(w.Lost) != 0 {
		t.Errorf("lost creates %v remain", w.Lost)
	}
}

func TestAnApplyThatWaitedWhileCreatesWereLostFails(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	submitRun(t, l, "edge")
	waiting := submitRun(t, l, "edge")
	onboarding := submitJob(t, l, orchestrator.JobHostOnboard, "edge")
	lose(t, l)
	j := claim(t, l)
	if j.ID != onboarding.ID {
		t.Errorf("claimed %+v, want the onboarding", j)
	}
	wantSteps(t, l, waiting.ID, "failed: failed blocked blocked blocked")
	f := must(l.Run(t.Context(), waiting.ID))(t).Steps[0].Failure
	wantCode(t, f.Err(), orchestrator.CodeRefused, "vm.a", "--accept-lost")
}

func TestLostCreatesAreFoundOrAccepted(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	submitRun(t, l, "edge")
	lose(t, l)
	w := must(l.Workspace(t.Context(), "edge"))(t)
	if len(w.Lost) != 2 || w.Lost[0].Address != "vm.a" || w.Lost[0].ID != "i-1" || w.Lost[0].Job == "" || w.Lost[0].Since.IsZero() {
		t.Errorf("lost creates %+v", w.Lost)
	}
	must(l.SubmitJob(t.Context(), orchestrator.NewJob{
		Kind: orchestrator.JobWorkspaceApply, Workspace: "edge", Spec: orchestrator.JobSpec{RefreshOnly: true},
	}))(t)
	finish(t, l, claim(t, l), orchestrator.Outcome{Found: []string{"vm.a", "vm.unknown"}})
	if ws := must(l.Workspaces(t.Context()))(t); len(ws[0].Lost) != 1 || ws[0].Lost[0].Address != "vm.b" {
		t.Errorf("lost creates %+v, want vm.b", ws[0].Lost)
	}
	accepted := must(l.AcceptLost(t.Context(), "edge", tester))(t)
	if len(accepted) != 1 || accepted[0].Address != "vm.b" {
		t.Errorf("accepted %+v, want vm.b", accepted)
	}
	count := map[orchestrator.EventKind]int{}
	for _, e := range must(l.Events(t.Context(), orchestrator.EventFilter{Workspace: "edge"}))(t) {
		count[e.Kind]++
	}
	for kind, want := range map[orchestrator.EventKind]int{
		orchestrator.EventLostSuspected: 2,
		orchestrator.EventLostFound:     1,
		orchestrator.EventLostAccepted:  1,
	} {
		if count[kind] != want {
			t.Errorf("%d events %s, want %d", count[kind], kind, want)
		}
	}
	submitRun(t, l, "edge")
}
