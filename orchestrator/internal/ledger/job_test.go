package ledger

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/exocomp/exocomp/orchestrator"
)

func TestAnInterruptedStandaloneJobIsRedrivenOnce(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	n := orchestrator.NewJob{
		Kind:      orchestrator.JobHostOnboard,
		Workspace: "edge",
		Spec:      orchestrator.JobSpec{Hosts: []string{"web1"}, Rotate: true},
		By:        tester,
	}
	old := must(l.SubmitJob(t.Context(), n))(t)
	_, err := l.RedriveJob(t.Context(), old.ID, tester)
	wantCode(t, err, orchestrator.CodeConflict, "is queued")
	j := claim(t, l)
	cut := must(l.InterruptJob(t.Context(), j.ID, j.Attempt.Token, "power cut", true))(t)
	if cut.State != orchestrator.JobInterrupted || cut.Failure.Hint != "run it again: exocomp jobs redrive "+string(j.ID) {
		t.Errorf("cut short: %+v", cut)
	}
	claimNothing(t, l)
	again := must(l.RedriveJob(t.Context(), old.ID, tester))(t)
	if diff := cmp.Diff(n.Spec, again.Spec); diff != "" || again.Attempt.Number != 2 || again.Redrives != old.ID {
		t.Errorf("redriven as %+v, %s", again, diff)
	}
	if got := must(l.Job(t.Context(), old.ID))(t); got.RedrivenBy != again.ID {
		t.Errorf("the old job names %q as the one that runs it again", got.RedrivenBy)
	}
	if twice := must(l.RedriveJob(t.Context(), old.ID, tester))(t); twice.ID != again.ID {
		t.Errorf("redriven twice, as %s and %s", again.ID, twice.ID)
	}
	if k := claim(t, l); k.ID != again.ID {
		t.Errorf("claimed %s, want %s", k.ID, again.ID)
	}
}

func TestAStepsJobIsNotRedriven(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	submitRun(t, l, "edge")
	j := claim(t, l)
	must(l.InterruptJob(t.Context(), j.ID, j.Attempt.Token, "power cut", true))(t)
	_, err := l.RedriveJob(t.Context(), j.ID, tester)
	wantCode(t, err, orchestrator.CodeConflict, string(j.Run))
}

func TestDrainingClaimsNothingAndSurvivesARestart(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	submitRun(t, l, "edge")
	for range 2 {
		if err := l.SetDraining(t.Context(), true, tester); err != nil {
			t.Fatal(err)
		}
	}
	claimNothing(t, l)
	if !must(copyLive(t, l).Draining(t.Context()))(t) {
		t.Error("a restart ended the drain")
	}
	if err := l.SetDraining(t.Context(), false, tester); err != nil {
		t.Fatal(err)
	}
	claim(t, l)
	var kinds []orchestrator.EventKind
	for _, e := range must(l.Events(t.Context(), orchestrator.EventFilter{}))(t) {
		if e.Kind == orchestrator.EventDrainStarted || e.Kind == orchestrator.EventDrainEnded {
			kinds = append(kinds, e.Kind)
		}
	}
	if !slices.Equal(kinds, []orchestrator.EventKind{orchestrator.EventDrainStarted, orchestrator.EventDrainEnded}) {
		t.Errorf("events %v, want one start and one end", kinds)
	}
}

func TestTheOldestClaimableJobComesFirst(t *testing.T) {
	l := openTest(t)
	var want []orchestrator.JobID
	for _, w := range []string{"zulu", "mike", "alpha"} {
		addWorkspace(t, l, w)
		want = append(want, submitJob(t, l, orchestrator.JobWorkspaceApply, w).ID)
	}
	for _, id := range want {
		if j := claim(t, l); j.ID != id {
			t.Errorf("claimed %s, want %s", j.ID, id)
		}
	}
}

func TestAnOutcomeIsRecordedWhole(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	run := submitRun(t, l, "edge")
	j := claim(t, l)
	report := &orchestrator.Report{Summary: "2 added", Changes: []orchestrator.Change{{Address: "a.b", Action: "create"}}}
	inv := inventoryOf("web1", "web2")
	done := finish(t, l, j, orchestrator.Outcome{Report: report, Inventory: inv, Warnings: []string{"port 2222 was not granted"}})
	if done.State != orchestrator.JobSucceeded || done.FinishedAt.IsZero() {
		t.Errorf("job %+v", done)
	}
	if diff := cmp.Diff(report, done.Report); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	got := must(l.Inventory(t.Context(), "edge"))(t)
	want := *inv
	want.Workspace, want.Job, want.UpdatedAt = "edge", j.ID, got.UpdatedAt
	if diff := cmp.Diff(want, got); diff != "" || got.UpdatedAt.IsZero() {
		t.Errorf("inventory (-want +got):\n%s", diff)
	}
	if r := must(l.Run(t.Context(), run.ID))(t); r.Inventory != inv.Digest {
		t.Errorf("the run requires inventory %q, want %q", r.Inventory, inv.Digest)
	}
	var said []string
	for _, e := range must(l.Events(t.Context(), orchestrator.EventFilter{Job: j.ID}))(t) {
		if e.Kind == orchestrator.EventInventoryCaptured || e.Warning {
			said = append(said, e.Message)
		}
	}
	if !slices.Equal(said, []string{"captured 2 output(s) to inventory /a/edge.json naming 2 host(s)", "port 2222 was not granted"}) {
		t.Errorf("events say %q", said)
	}
	onboard(t, l, "web1", "web2")
	if a := must(l.Admissions(t.Context(), "edge"))(t); len(a) != 2 || a[0].Host != "web1" || a[0].At.IsZero() {
		t.Errorf("admissions %+v", a)
	}
}

// onboard walks the chain's steps 2 and 3, admitting the hosts.
func onboard(t *testing.T, l *Ledger, hosts ...string) {
	t.Helper()
	finish(t, l, claim(t, l), orchestrator.Outcome{})
	var admit []orchestrator.Admission
	for _, h := range hosts {
		admit = append(admit, orchestrator.Admission{Host: h, Login: orchestrator.LoginAutomation, Address: h + ":22"})
	}
	finish(t, l, claim(t, l), orchestrator.Outcome{Admit: admit})
}

func inventoryOf(hosts ...string) *orchestrator.Inventory {
	return &orchestrator.Inventory{
		Digest:   "sha256:1234",
		Content:  []byte(`{"all":{}}`),
		Path:     "/a/edge.json",
		Hosts:    hosts,
		Captured: 2,
	}
}

func TestAHostThatLeavesTheInventoryIsNotAdmittedAnyMore(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	submitRun(t, l, "edge")
	finish(t, l, claim(t, l), orchestrator.Outcome{Inventory: inventoryOf("web1", "web2")})
	onboard(t, l, "web1", "web2")
	finish(t, l, claim(t, l), orchestrator.Outcome{})
	submitJob(t, l, orchestrator.JobWorkspaceApply, "edge")
	finish(t, l, claim(t, l), orchestrator.Outcome{Inventory: inventoryOf("web2")})
	if a := must(l.Admissions(t.Context(), "edge"))(t); len(a) != 1 || a[0].Host != "web2" {
		t.Errorf("admissions %+v, want web2's", a)
	}
}

func TestInventoryThatWasNeverCaptured(t *testing.T) {
	l := openTest(t)
	_, err := l.Inventory(t.Context(), "edge")
	wantCode(t, err, orchestrator.CodeNotFound, `no workspace "edge"`)
	addWorkspace(t, l, "edge")
	_, err = l.Inventory(t.Context(), "edge")
	wantCode(t, err, orchestrator.CodeNotFound, "tf:edge was never captured", "exocomp workspace apply edge")
	if all := must(l.Inventories(t.Context()))(t); len(all) != 0 {
		t.Errorf("inventories %v", all)
	}
}

func TestProgressNamesTheHost(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	submitRun(t, l, "edge")
	j := claim(t, l)
	if err := l.Progress(t.Context(), j.ID, "two\nlines", "web1"); err != nil {
		t.Fatal(err)
	}
	events := must(l.Events(t.Context(), orchestrator.EventFilter{Job: j.ID}))(t)
	e := events[len(events)-1]
	if e.Kind != orchestrator.EventJobProgress || e.Host != "web1" || e.Message != "two; lines" || e.Step != orchestrator.StepTofuApply {
		t.Errorf("event %+v", e)
	}
	wantCode(t, l.Progress(t.Context(), "job_none", "x", ""), orchestrator.CodeNotFound)
}

func TestJobSubmitsAreIdempotentByKey(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	n := orchestrator.NewJob{Key: "k1", Kind: orchestrator.JobWorkspaceApply, Workspace: "edge", By: tester}
	first := must(l.SubmitJob(t.Context(), n))(t)
	finish(t, l, claim(t, l), failure())
	if again := must(l.SubmitJob(t.Context(), n))(t); again.ID != first.ID || again.State != orchestrator.JobFailed {
		t.Errorf("the same key: job %s (%s), want %s", again.ID, again.State, first.ID)
	}
	n.Spec.RefreshOnly = true
	_, err := l.SubmitJob(t.Context(), n)
	wantCode(t, err, orchestrator.CodeConflict, string(first.ID))
}
