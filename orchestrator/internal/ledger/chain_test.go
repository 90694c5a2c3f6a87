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

// Invariant 1: step k is released only when step k-1 succeeded; a succeeded
// step is never run again in its run.
func TestInvariant1StepsFollowTheirPredecessors(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	run := submitRun(t, l, "edge")
	finish(t, l, claim(t, l), orchestrator.Outcome{})
	for _, change := range []string{
		`UPDATE step SET state = 'ready' WHERE seq = 3`,                                                                        // before step 2
		`UPDATE step SET state = 'ready', finished_at = NULL WHERE seq = 1`,                                                    // again
		`UPDATE step SET state = 'running', finished_at = NULL WHERE seq = 1`,                                                  // again
		`UPDATE step SET state = 'succeeded', finished_at = 1 WHERE seq = 2`,                                                   // without running
		`INSERT INTO step SELECT run_id, 5, kind, 'ready', origin, 0, 0, NULL, NULL, NULL, NULL, NULL FROM step WHERE seq = 4`, // from nothing
	} {
		err := l.write(t.Context(), "test", func(tx *tx) error { return tx.exec(t.Context(), change) })
		wantCode(t, err, orchestrator.CodeInvalid)
	}
	finish(t, l, claim(t, l), failure())
	wantSteps(t, l, run.ID, "failed: succeeded failed blocked blocked")
	claimNothing(t, l)
	if _, err := l.ResumeRun(t.Context(), orchestrator.ResumeRun{Run: run.ID, Spec: spec("b"), By: tester}); err != nil {
		t.Fatal(err)
	}
	if j := claim(t, l); j.Step != 2 || j.Attempt.Number != 2 {
		t.Errorf("resumed with step %d attempt %d, want step 2 attempt 2", j.Step, j.Attempt.Number)
	}
}

// Every transition that the domain's table lacks is refused by the schema.
func TestTheSchemaKnowsTheDomainsTransitionsOnly(t *testing.T) {
	l := openTest(t)
	allowed := map[string]bool{}
	for _, tr := range orchestrator.StepTransitions {
		allowed[string(tr.From)+" "+string(tr.To)] = true
	}
	rows := must(collect(t.Context(), l.reader, func(row scanner) (string, error) {
		var from, to string
		err := row.Scan(&from, &to)
		return from + " " + to, err
	}, `SELECT from_state, to_state FROM step_transition`))(t)
	for _, r := range rows {
		if !allowed[r] {
			t.Errorf("the schema allows %s", r)
		}
	}
	if len(rows) != len(allowed) {
		t.Errorf("the schema has %d transitions, the domain %d", len(rows), len(allowed))
	}
}

// Invariant 2: at most one attempt of a step is live; a result counts only with
// the live attempt's token.
func TestInvariant2OnlyTheLiveAttemptIsHeard(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	run := submitRun(t, l, "edge")
	first := claim(t, l)
	if len(first.Attempt.ID) != 8 || len(first.Attempt.Token.Reveal()) != 64 {
		t.Errorf("attempt %q with a token of %d characters", first.Attempt.ID, len(first.Attempt.Token.Reveal()))
	}
	claimNothing(t, l)
	wrong := orchestrator.NewSecret(strings.Repeat("0", 64))
	for _, token := range []orchestrator.Secret{wrong, {}} {
		_, err := l.FinishJob(t.Context(), first.ID, token, orchestrator.Outcome{})
		wantCode(t, err, orchestrator.CodeConflict)
		wantCode(t, l.SetPhase(t.Context(), first.ID, token, "plan"), orchestrator.CodeConflict)
		_, err = l.InterruptJob(t.Context(), first.ID, token, "x", true)
		wantCode(t, err, orchestrator.CodeConflict)
	}
	cut := must(l.InterruptJob(t.Context(), first.ID, first.Attempt.Token, "the machine went down", true))(t)
	second := claim(t, l)
	if cut.State != orchestrator.JobInterrupted || cut.RedrivenBy != second.ID || second.Redrives != first.ID || second.Attempt.Number != 2 {
		t.Errorf("cut short: %+v, then %+v", cut, second)
	}
	before := must(l.LastEventID(t.Context()))(t)
	_, err := l.FinishJob(t.Context(), first.ID, first.Attempt.Token, orchestrator.Outcome{})
	wantCode(t, err, orchestrator.CodeConflict, "interrupted")
	_, err = l.FinishJob(t.Context(), second.ID, first.Attempt.Token, orchestrator.Outcome{})
	wantCode(t, err, orchestrator.CodeConflict)
	if after := must(l.LastEventID(t.Context()))(t); after != before {
		t.Error("a refused result left events")
	}
	finish(t, l, second, orchestrator.Outcome{})
	_, err = l.FinishJob(t.Context(), second.ID, second.Attempt.Token, orchestrator.Outcome{})
	wantCode(t, err, orchestrator.CodeConflict)
	wantSteps(t, l, run.ID, "running: succeeded ready blocked blocked")
}

func TestTokensAreShownToWorkersAndRecoveryOnly(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	submitRun(t, l, "edge")
	j := claim(t, l)
	running := must(l.RunningJobs(t.Context()))(t)
	if len(running) != 1 || running[0].Attempt != j.Attempt {
		t.Errorf("running jobs %+v, want the claimed one with its token", running)
	}
	shown := must(l.Jobs(t.Context(), orchestrator.JobFilter{}))(t)
	shown = append(shown, must(l.Job(t.Context(), j.ID))(t))
	shown = append(shown, finish(t, l, j, orchestrator.Outcome{}))
	for _, s := range shown {
		if !s.Attempt.Token.IsZero() {
			t.Errorf("job %s shows its token", s.ID)
		}
	}
	var kept int
	if err := l.reader.QueryRowContext(t.Context(), `SELECT count(token) FROM job`).Scan(&kept); err != nil {
		t.Fatal(err)
	}
	if kept != 0 {
		t.Error("a finished attempt's token is kept")
	}
}

// Invariant 3: the intent is durable before a side effect, the result before
// the next release. Another process that opens the file sees both.
func TestInvariant3IntentAndResultAreOnDisk(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	run := submitRun(t, l, "edge")
	j := claim(t, l)
	if err := l.SetPhase(t.Context(), j.ID, j.Attempt.Token, "apply"); err != nil {
		t.Fatal(err)
	}
	crashed := copyLive(t, l)
	running := must(crashed.RunningJobs(t.Context()))(t)
	if len(running) != 1 || running[0].Phase != "apply" || running[0].Attempt.Token != j.Attempt.Token {
		t.Errorf("after a crash the running jobs are %+v", running)
	}
	finish(t, l, j, orchestrator.Outcome{})
	wantSteps(t, copyLive(t, l), run.ID, "running: succeeded ready blocked blocked")
}

// Invariant 4: a run holds its workspace from submit to its final state; later
// runs and applies queue behind it, first in, first out.
func TestInvariant4AWorkspaceIsHeldFirstInFirstOut(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	addWorkspace(t, l, "other")
	first := submitRun(t, l, "edge")
	apply := submitJob(t, l, orchestrator.JobWorkspaceApply, "edge")
	second := submitRun(t, l, "edge")
	elsewhere := submitRun(t, l, "other")
	wantSteps(t, l, second.ID, "queued: blocked blocked blocked blocked")
	turns := must(l.Turns(t.Context(), "edge"))(t)
	if len(turns) != 3 || turns[0].Run != first.ID || turns[1].Job != apply.ID || turns[2].Run != second.ID {
		t.Errorf("turns %+v", turns)
	}
	j := claim(t, l)
	if j.Run != first.ID {
		t.Errorf("claimed %+v, want the first run's", j)
	}
	if k := claim(t, l); k.Run != elsewhere.ID {
		t.Errorf("claimed %+v, want the other workspace's", k)
	}
	claimNothing(t, l)
	finish(t, l, j, failure()) // final: the workspace is given back
	k := claim(t, l)
	if k.ID != apply.ID {
		t.Errorf("claimed %+v, want the apply", k)
	}
	claimNothing(t, l)
	finish(t, l, k, orchestrator.Outcome{})
	if k = claim(t, l); k.Run != second.ID {
		t.Errorf("claimed %+v, want the second run's", k)
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
	if err := l.RemoveWorkspace(t.Context(), "edge", tester); err != nil {
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

// Invariant 5: a change and its event are one transaction.
func TestInvariant5AFailedChangeLeavesNoEvent(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	run := submitRun(t, l, "edge")
	j := claim(t, l)
	before := must(l.LastEventID(t.Context()))(t)
	changed := l.Changed()
	bad := orchestrator.Outcome{Admit: []orchestrator.Admission{
		{Host: "web1", Login: orchestrator.LoginAutomation},
		{Host: "web2", Login: "nobody-knows"},
	}}
	_, err := l.FinishJob(t.Context(), j.ID, j.Attempt.Token, bad)
	wantCode(t, err, orchestrator.CodeInvalid)
	if after := must(l.LastEventID(t.Context()))(t); after != before {
		t.Errorf("%d events of a change that did not happen", after-before)
	}
	if a := must(l.Admissions(t.Context(), "edge"))(t); len(a) != 0 {
		t.Errorf("admissions %v of a change that did not happen", a)
	}
	select {
	case <-changed:
		t.Error("waiters were woken")
	default:
	}
	wantSteps(t, l, run.ID, "running: running blocked blocked blocked")
	finish(t, l, j, orchestrator.Outcome{}) // the attempt is still live
}

func TestEventsAreAppendOnly(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	for _, change := range []string{`UPDATE event SET message = ''`, `DELETE FROM event`} {
		err := l.write(t.Context(), "test", func(tx *tx) error { return tx.exec(t.Context(), change) })
		wantCode(t, err, orchestrator.CodeInvalid, "append-only")
	}
}

// Invariant 6: submits are idempotent by key.
func TestInvariant6SubmitsAreIdempotentByKey(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	addWorkspace(t, l, "other")
	n := newRun("edge")
	n.Key = "k1"
	first, created, err := l.SubmitRun(t.Context(), n)
	if err != nil || !created {
		t.Fatalf("created %v, %v", created, err)
	}
	finish(t, l, claim(t, l), orchestrator.Outcome{Lost: []orchestrator.LostCreate{{Address: "a.b"}}, Failure: failure().Failure})
	again, created, err := l.SubmitRun(t.Context(), n) // whatever has become of it since
	if err != nil || created || again.ID != first.ID || again.State != orchestrator.RunFailed {
		t.Errorf("the same key: run %s (%s), created %v, %v", again.ID, again.State, created, err)
	}
	for name, change := range map[string]func(*orchestrator.NewRun){
		"workspace": func(n *orchestrator.NewRun) { n.Workspace = "other" },
		"playbook":  func(n *orchestrator.NewRun) { n.Spec = spec("b") },
		"egress":    func(n *orchestrator.NewRun) { n.Spec.Egress = []int{2222} },
	} {
		other := n
		change(&other)
		if _, _, err := l.SubmitRun(t.Context(), other); orchestrator.CodeOf(err) != orchestrator.CodeConflict {
			t.Errorf("another %s under the same key: %v, want a conflict", name, err)
		}
	}
	if runs := must(l.Runs(t.Context(), orchestrator.RunFilter{}))(t); len(runs) != 1 {
		t.Errorf("%d runs, want 1", len(runs))
	}
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
	cut := func(crash bool) {
		t.Helper()
		j := claim(t, l)
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
