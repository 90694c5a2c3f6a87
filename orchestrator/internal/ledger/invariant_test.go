package ledger

import (
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// Invariant 1: step k is released only when step k-1 succeeded; a succeeded
// step is never run again in its run.
func TestInvariant1StepsFollowTheirPredecessors(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	run := submitRun(t, l, "edge")
	finish(t, l, claim(t, l), orchestrator.Outcome{})
	for _, change := range []string{
		`UPDATE step SET taken_from = run_id WHERE seq = 2`,                                                                                   // from itself
		`UPDATE step SET origin = 'caller' WHERE seq = 2`,                                                                                     // by a caller
		`UPDATE step SET state = 'ready' WHERE seq = 3`,                                                                                       // before step 2
		`UPDATE step SET state = 'ready', finished_at = NULL WHERE seq = 1`,                                                                   // again
		`UPDATE step SET state = 'running', finished_at = NULL WHERE seq = 1`,                                                                 // again
		`UPDATE step SET state = 'succeeded', finished_at = 1 WHERE seq = 2`,                                                                  // without running
		`UPDATE step SET state = 'succeeded', finished_at = 1 WHERE seq = 3`,                                                                  // supplied by nobody
		`INSERT INTO step SELECT run_id, 5, kind, 'ready', origin, NULL, NULL, 0, 0, 0, NULL, NULL, NULL, NULL, NULL FROM step WHERE seq = 4`, // from nothing
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
