package ledger

import (
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// lose makes the workspace's next apply lose two creates.
func lose(t *testing.T, l *Ledger) {
	t.Helper()
	o := failure()
	o.Lost = []orchestrator.LostCreate{{Address: "vm.a", ID: "i-1", PriorID: "i-0"}, {Address: "vm.b"}}
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

	says := []string{"vm.a", "vm.b", "tofu -chdir=/srv/edge import vm.a i-1", "tofu -chdir=/srv/edge import vm.b ID", "--accept-lost", "exocomp workspace refresh edge"}
	_, _, err := l.SubmitRun(t.Context(), newRun("edge"))
	wantCode(t, err, orchestrator.CodeRefused, says...)
	_, err = l.SubmitJob(t.Context(), orchestrator.NewJob{Kind: orchestrator.JobWorkspaceApply, Workspace: "edge"})
	wantCode(t, err, orchestrator.CodeRefused, says...)
	_, err = l.RedriveJob(t.Context(), interrupted.ID, tester)
	wantCode(t, err, orchestrator.CodeRefused, says...)
	_, err = l.ResumeRun(t.Context(), orchestrator.ResumeRun{Run: run.ID, Spec: spec("a"), By: tester})
	wantCode(t, err, orchestrator.CodeRefused, says...)

	// What applies nothing is let through.
	for _, n := range []orchestrator.NewJob{
		{Kind: orchestrator.JobWorkspaceApply, Workspace: "edge", Spec: orchestrator.JobSpec{RefreshOnly: true}},
		{Kind: orchestrator.JobHostOnboard, Workspace: "edge", Spec: orchestrator.JobSpec{AcceptLost: true}},
	} {
		must(l.SubmitJob(t.Context(), n))(t)
		finish(t, l, claim(t, l), orchestrator.Outcome{})
	}
	wantLost(t, l, "vm.a vm.b")
}

// wantLost compares the addresses that are suspected in edge.
func wantLost(t *testing.T, l *Ledger, want string) {
	t.Helper()
	var got []string
	for _, c := range must(l.Workspace(t.Context(), "edge"))(t).Lost {
		got = append(got, c.Address)
	}
	if strings.Join(got, " ") != want {
		t.Errorf("suspected %q, want %q", got, want)
	}
}

// Whoever accepts accepts what stands then: it is gone at once, with a security
// event each, and what is lost later bars that job, its repetition and its run
// like any other.
func TestAcceptingMeansWhatIsLostThen(t *testing.T) {
	accept := orchestrator.NewJob{Kind: orchestrator.JobWorkspaceApply, Workspace: "edge", Spec: orchestrator.JobSpec{AcceptLost: true}, By: tester}
	for name, submit := range map[string]func(*testing.T, *Ledger, orchestrator.RunID){
		"run": func(t *testing.T, l *Ledger, _ orchestrator.RunID) {
			n := newRun("edge")
			n.Spec.AcceptLost = true
			if _, _, err := l.SubmitRun(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		},
		"resume": func(t *testing.T, l *Ledger, failed orchestrator.RunID) {
			s := spec("a")
			s.AcceptLost = true
			must(l.ResumeRun(t.Context(), orchestrator.ResumeRun{Run: failed, Spec: s, By: tester}))(t)
		},
		"apply": func(t *testing.T, l *Ledger, _ orchestrator.RunID) { must(l.SubmitJob(t.Context(), accept))(t) },
	} {
		t.Run(name, func(t *testing.T) {
			l := openTest(t)
			addWorkspace(t, l, "edge")
			run := submitRun(t, l, "edge")
			lose(t, l)
			submit(t, l, run.ID)
			wantLost(t, l, "")
			accepted := must(l.Events(t.Context(), orchestrator.EventFilter{Security: true}))(t)
			if len(accepted) != 2 || accepted[0].Kind != orchestrator.EventLostAccepted || accepted[0].By != tester {
				t.Errorf("security events %+v, want vm.a and vm.b accepted by %v", accepted, tester)
			}
			j := claim(t, l)
			must(l.SubmitJob(t.Context(), accept))(t) // waits, and accepts nothing
			finish(t, l, j, orchestrator.Outcome{Lost: []orchestrator.LostCreate{{Address: "vm.c"}}, Failure: failure().Failure})
			if j := must(l.ClaimJob(t.Context()))(t); j != nil {
				t.Errorf("claimed %+v although vm.c is lost since it was submitted", j)
			}
			wantLost(t, l, "vm.c")
		})
	}
	t.Run("redrive", func(t *testing.T) {
		l := openTest(t)
		addWorkspace(t, l, "edge")
		must(l.SubmitJob(t.Context(), accept))(t)
		j := claim(t, l)
		must(l.InterruptJob(t.Context(), j.ID, j.Attempt.Token, "crash", true))(t)
		submitJob(t, l, orchestrator.JobWorkspaceApply, "edge")
		lose(t, l)
		_, err := l.RedriveJob(t.Context(), j.ID, tester)
		wantCode(t, err, orchestrator.CodeRefused, "vm.a")
	})
}

// A workspace with lost creates is neither forgotten nor moved away from the
// state that lacks them; its other settings may change.
func TestLostCreatesKeepTheirWorkspace(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	submitRun(t, l, "edge")
	lose(t, l)
	w := must(l.Workspace(t.Context(), "edge"))(t)
	for name, change := range map[string]func(*orchestrator.Workspace){
		"dir":     func(w *orchestrator.Workspace) { w.Dir = "/srv/other" },
		"tofu":    func(w *orchestrator.Workspace) { w.TofuWorkspace = "blue" },
		"backend": func(w *orchestrator.Workspace) { w.BackendConfig = []string{"key=value"} },
	} {
		other := w
		change(&other)
		if _, err := l.AddWorkspace(t.Context(), other, tester); err == nil {
			t.Errorf("another %s is accepted", name)
		} else {
			wantCode(t, err, orchestrator.CodeRefused, "vm.a", "import vm.b ID", "exocomp workspace apply edge --accept-lost")
		}
	}
	w.Approval = orchestrator.ApprovalAlways
	must(l.AddWorkspace(t.Context(), w, tester))(t)
	wantLost(t, l, "vm.a vm.b")

	err := l.RemoveWorkspace(t.Context(), "edge", false, tester)
	wantCode(t, err, orchestrator.CodeRefused, "vm.a", "import vm.b ID", "exocomp workspace remove edge --accept-lost")
	if err := l.RemoveWorkspace(t.Context(), "edge", true, tester); err != nil {
		t.Fatal(err)
	}
	if events := must(l.Events(t.Context(), orchestrator.EventFilter{Security: true, Workspace: "edge"}))(t); len(events) != 2 {
		t.Errorf("security events %+v, want both accepted", events)
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

func TestLostCreatesAreFound(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	submitRun(t, l, "edge")
	lose(t, l)
	w := must(l.Workspace(t.Context(), "edge"))(t)
	if len(w.Lost) != 2 || w.Lost[0].Address != "vm.a" || w.Lost[0].ID != "i-1" || w.Lost[0].PriorID != "i-0" || w.Lost[0].Job == "" || w.Lost[0].Since.IsZero() {
		t.Errorf("lost creates %+v", w.Lost)
	}
	must(l.SubmitJob(t.Context(), orchestrator.NewJob{
		Kind: orchestrator.JobWorkspaceApply, Workspace: "edge", Spec: orchestrator.JobSpec{RefreshOnly: true},
	}))(t)
	finish(t, l, claim(t, l), orchestrator.Outcome{Found: []string{"vm.a", "vm.unknown"}})
	if ws := must(l.Workspaces(t.Context()))(t); len(ws[0].Lost) != 1 || ws[0].Lost[0].Address != "vm.b" {
		t.Errorf("lost creates %+v, want vm.b", ws[0].Lost)
	}
	if err := l.FoundLost(t.Context(), "edge", []string{"vm.b"}); err != nil {
		t.Fatal(err)
	}
	wantLost(t, l, "")
	count := map[orchestrator.EventKind]int{}
	for _, e := range must(l.Events(t.Context(), orchestrator.EventFilter{Workspace: "edge"}))(t) {
		count[e.Kind]++
	}
	for kind, want := range map[orchestrator.EventKind]int{
		orchestrator.EventLostSuspected: 2,
		orchestrator.EventLostFound:     2,
	} {
		if count[kind] != want {
			t.Errorf("%d events %s, want %d", count[kind], kind, want)
		}
	}
	submitRun(t, l, "edge")
}
