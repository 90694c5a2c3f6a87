package ledger

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/exocomp/exocomp/orchestrator"
)

func workspaceNamed(name string) orchestrator.Workspace {
	return orchestrator.Workspace{Name: name, Dir: "/srv/" + name, Approval: orchestrator.ApprovalNever}
}

func addWorkspace(t *testing.T, l *Ledger, name string) {
	t.Helper()
	if _, err := l.AddWorkspace(t.Context(), workspaceNamed(name), tester); err != nil {
		t.Fatal(err)
	}
}

func playbook(digit string) orchestrator.PlaybookRef {
	return orchestrator.PlaybookRef{Path: "/src/site.yml", Entry: "site.yml", Digest: "sha256:" + strings.Repeat(digit, 64)}
}

func spec(digit string) orchestrator.RunSpec {
	return orchestrator.RunSpec{Playbook: playbook(digit), SSHWait: time.Minute}
}

func newRun(workspace string) orchestrator.NewRun {
	return orchestrator.NewRun{Kind: orchestrator.RunProvision, Workspace: workspace, Spec: spec("a"), By: tester}
}

func submitRun(t *testing.T, l *Ledger, workspace string) orchestrator.Run {
	t.Helper()
	r, created, err := l.SubmitRun(t.Context(), newRun(workspace))
	if err != nil {
		t.Fatal(err)
	}
	if !created {
		t.Fatalf("run %s is not new", r.ID)
	}
	return r
}

func submitJob(t *testing.T, l *Ledger, kind orchestrator.JobKind, workspace string) orchestrator.Job {
	t.Helper()
	return must(l.SubmitJob(t.Context(), orchestrator.NewJob{Kind: kind, Workspace: workspace, By: tester}))(t)
}

func claim(t *testing.T, l *Ledger) orchestrator.Job {
	t.Helper()
	j := must(l.ClaimJob(t.Context()))(t)
	if j == nil {
		t.Fatal("nothing to claim")
	}
	return *j
}

func claimNothing(t *testing.T, l *Ledger) {
	t.Helper()
	if j := must(l.ClaimJob(t.Context()))(t); j != nil {
		t.Fatalf("claimed %s (%s of %s), want nothing", j.ID, j.StepKind, j.Workspace)
	}
}

func finish(t *testing.T, l *Ledger, j orchestrator.Job, o orchestrator.Outcome) orchestrator.Job {
	t.Helper()
	return must(l.FinishJob(t.Context(), j.ID, j.Attempt.Token, o))(t)
}

func failure() orchestrator.Outcome {
	return orchestrator.Fail(orchestrator.Errorf(orchestrator.CodeFailed, "it broke").WithHint("mend it"), nil)
}

// steps returns the states of a run's steps, as one word.
func steps(t *testing.T, l *Ledger, id orchestrator.RunID) string {
	t.Helper()
	r := must(l.Run(t.Context(), id))(t)
	out := string(r.State) + ":"
	for _, s := range r.Steps {
		out += " " + string(s.State)
	}
	return out
}

func wantSteps(t *testing.T, l *Ledger, id orchestrator.RunID, want string) {
	t.Helper()
	if got := steps(t, l, id); got != want {
		t.Errorf("run is %q, want %q", got, want)
	}
}

func TestAChainRunsItsFourStepsInOrder(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	run := submitRun(t, l, "edge")
	wantSteps(t, l, run.ID, "running: ready blocked blocked blocked")
	for i, kind := range orchestrator.RunProvision.Steps() {
		j := claim(t, l)
		if j.Run != run.ID || j.Step != i+1 || j.StepKind != kind || j.Attempt.Number != 1 {
			t.Fatalf("claimed %+v, want step %d", j, i+1)
		}
		claimNothing(t, l)
		finish(t, l, j, orchestrator.Outcome{Report: &orchestrator.Report{Summary: "did " + string(kind)}})
	}
	wantSteps(t, l, run.ID, "succeeded: succeeded succeeded succeeded succeeded")
	got := must(l.Run(t.Context(), run.ID))(t)
	if got.FinishedAt.IsZero() || got.Steps[3].Report.Summary != "did ansible-play" || got.Steps[3].StartedAt.IsZero() {
		t.Errorf("finished run %+v", got)
	}
	if turns := must(l.Turns(t.Context(), "edge"))(t); len(turns) != 0 {
		t.Errorf("turns %v are open", turns)
	}
	var kinds []orchestrator.EventKind
	for _, e := range must(l.Events(t.Context(), orchestrator.EventFilter{Run: run.ID}))(t)[:9] {
		kinds = append(kinds, e.Kind)
	}
	want := []orchestrator.EventKind{
		orchestrator.EventRunSubmitted, orchestrator.EventStepReleased, orchestrator.EventJobQueued,
		orchestrator.EventJobStarted, orchestrator.EventStepStarted, orchestrator.EventJobFinished,
		orchestrator.EventStepFinished, orchestrator.EventStepReleased, orchestrator.EventJobQueued,
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestResumeIsRefusedByANewerRunOrAHolder(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	resume := func(id orchestrator.RunID) error {
		_, err := l.ResumeRun(t.Context(), orchestrator.ResumeRun{Run: id, Spec: spec("b"), By: tester})
		return err
	}
	first := submitRun(t, l, "edge")
	wantCode(t, resume(first.ID), orchestrator.CodeConflict, "is running")
	finish(t, l, claim(t, l), failure())
	apply := submitJob(t, l, orchestrator.JobWorkspaceApply, "edge")
	wantCode(t, resume(first.ID), orchestrator.CodeConflict, string(apply.ID))
	finish(t, l, claim(t, l), orchestrator.Outcome{})
	if err := resume(first.ID); err != nil {
		t.Fatal(err)
	}
	events := must(l.Events(t.Context(), orchestrator.EventFilter{Run: first.ID}))(t)
	i := slices.IndexFunc(events, func(e orchestrator.Event) bool { return e.Kind == orchestrator.EventRunResumed })
	if i < 0 || !strings.Contains(events[i].Message, playbook("a").Digest+" → "+playbook("b").Digest) {
		t.Errorf("no event names the old and the new snapshot: %+v", events)
	}
	if got := must(l.Run(t.Context(), first.ID))(t); got.Spec.Playbook != playbook("b") || !got.FinishedAt.IsZero() {
		t.Errorf("resumed run %+v", got)
	}
	finish(t, l, claim(t, l), failure())
	second := submitRun(t, l, "edge")
	finish(t, l, claim(t, l), failure())
	wantCode(t, resume(first.ID), orchestrator.CodeConflict, string(second.ID))
	if err := l.RemoveWorkspace(t.Context(), "edge", false, tester); err != nil {
		t.Fatal(err)
	}
	wantCode(t, resume(second.ID), orchestrator.CodeNotFound, "edge")
	addWorkspace(t, l, "edge")
	wantCode(t, resume(second.ID), orchestrator.CodeConflict, "removed and added again")
}

func TestAParkedRunRefusesOthersByName(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	run := submitRun(t, l, "edge")
	j := claim(t, l)
	// Nothing parks yet; the state is put there as an approval would.
	err := l.write(t.Context(), "park", func(tx *tx) error {
		r := must(runByID(t.Context(), tx, run.ID))(t)
		row := must(jobByID(t.Context(), tx, j.ID))(t)
		if err := tx.moveJob(t.Context(), &row, orchestrator.JobSucceeded, nil, nil); err != nil {
			return err
		}
		if err := tx.moveStep(t.Context(), &r, &r.Steps[0], orchestrator.TriggerPark, nil); err != nil {
			return err
		}
		return tx.settleRun(t.Context(), &r)
	})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = l.SubmitRun(t.Context(), newRun("edge"))
	wantCode(t, err, orchestrator.CodeConflict, string(run.ID), "approval")
	_, err = l.SubmitJob(t.Context(), orchestrator.NewJob{Kind: orchestrator.JobWorkspaceApply, Workspace: "edge"})
	wantCode(t, err, orchestrator.CodeConflict, string(run.ID))
	if _, err := l.CancelRun(t.Context(), run.ID, false, tester); err != nil {
		t.Fatal(err)
	}
	wantSteps(t, l, run.ID, "cancelled: cancelled cancelled cancelled cancelled")
	submitRun(t, l, "edge")
}

func TestSubmitRefusesWhatItCannotRun(t *testing.T) {
	l := openTest(t)
	_, _, err := l.SubmitRun(t.Context(), newRun("nowhere"))
	wantCode(t, err, orchestrator.CodeNotFound, "nowhere", "exocomp workspace add")
	addWorkspace(t, l, "edge")
	n := newRun("edge")
	n.Kind = "sideways"
	_, _, err = l.SubmitRun(t.Context(), n)
	wantCode(t, err, orchestrator.CodeInvalid, "sideways")
	n = newRun("edge")
	n.Spec.Playbook.Digest = "md5:1"
	_, _, err = l.SubmitRun(t.Context(), n)
	wantCode(t, err, orchestrator.CodeInvalid, "md5:1")
	_, err = l.SubmitJob(t.Context(), orchestrator.NewJob{Kind: orchestrator.JobStep, Workspace: "edge"})
	wantCode(t, err, orchestrator.CodeInvalid)
}

func TestCrashesAreCountedAndRestartsAreNot(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	run := submitRun(t, l, "edge")
	phase := "apply"
	cut := func(crash bool) {
		t.Helper()
		j := claim(t, l)
		if phase != "" {
			if err := l.SetPhase(t.Context(), j.ID, j.Attempt.Token, phase); err != nil {
				t.Fatal(err)
			}
		}
		must(l.InterruptJob(t.Context(), j.ID, j.Attempt.Token, "power cut", crash))(t)
	}
	for range 5 {
		cut(false)
	}
	for range orchestrator.MaxCrashAttempts - 1 {
		cut(true)
	}
	wantSteps(t, l, run.ID, "running: ready blocked blocked blocked")
	cut(true)
	wantSteps(t, l, run.ID, "failed: failed blocked blocked blocked")
	claimNothing(t, l)
	f := must(l.Run(t.Context(), run.ID))(t).Steps[0].Failure
	if f.Code != orchestrator.CodeFailed || !strings.Contains(f.Message, "needs resume") || f.Hint != "exocomp provision resume "+string(run.ID) {
		t.Errorf("failure %+v", f)
	}
	if _, err := l.ResumeRun(t.Context(), orchestrator.ResumeRun{Run: run.ID, Spec: spec("a"), By: tester}); err != nil {
		t.Fatal(err)
	}
	cut(true)
	s := must(l.Run(t.Context(), run.ID))(t).Steps[0]
	if s.State != orchestrator.StepReady || s.CrashAttempts != 1 || s.Attempts != 9 {
		t.Errorf("after the resume: %+v", s)
	}
	// A daemon that dies before a tool was begun costs less, but not nothing.
	phase = ""
	for range orchestrator.MaxCrashes - 2 {
		cut(true)
	}
	wantSteps(t, l, run.ID, "running: ready blocked blocked blocked")
	cut(true)
	wantSteps(t, l, run.ID, "failed: failed blocked blocked blocked")
}

func TestRunsAreListedNewestFirstAndFiltered(t *testing.T) {
	l := openTest(t)
	var all []orchestrator.RunID
	for i := range 4 {
		name := fmt.Sprintf("w%d", i%2)
		addWorkspace(t, l, name)
		all = append(all, submitRun(t, l, name).ID)
	}
	finish(t, l, claim(t, l), failure()) // run 0 fails, run 2 takes its place
	for _, c := range []struct {
		filter orchestrator.RunFilter
		want   []int
	}{
		{orchestrator.RunFilter{}, []int{3, 2, 1, 0}},
		{orchestrator.RunFilter{Limit: 2}, []int{3, 2}},
		{orchestrator.RunFilter{Limit: 2, Before: all[2]}, []int{1, 0}},
		{orchestrator.RunFilter{Workspace: "w0"}, []int{2, 0}},
		{orchestrator.RunFilter{State: orchestrator.RunFailed}, []int{0}},
		{orchestrator.RunFilter{State: orchestrator.RunQueued, Workspace: "w1"}, []int{3}},
		{orchestrator.RunFilter{Workspace: "nowhere"}, nil},
	} {
		var got []int
		for _, r := range must(l.Runs(t.Context(), c.filter))(t) {
			got = append(got, slices.Index(all, r.ID))
			if len(r.Steps) != 4 {
				t.Errorf("run %s has %d steps", r.ID, len(r.Steps))
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c.filter, diff)
		}
	}
	if r := must(l.NewestRun(t.Context(), "w0"))(t); r.ID != all[2] {
		t.Errorf("newest run is %s, want %s", r.ID, all[2])
	}
	_, err := l.NewestRun(t.Context(), "nowhere")
	wantCode(t, err, orchestrator.CodeNotFound, "nowhere")
	_, err = l.Run(t.Context(), "run_none")
	wantCode(t, err, orchestrator.CodeNotFound, "exocomp provision list")
}
