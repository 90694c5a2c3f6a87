package ledger

import (
	"slices"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// failingOn fails with a report about hosts, `name=state`.
func failingOn(hosts ...string) orchestrator.Outcome {
	o := failure()
	o.Report = &orchestrator.Report{}
	for _, h := range hosts {
		name, state, _ := strings.Cut(h, "=")
		o.Report.Hosts = append(o.Report.Hosts, orchestrator.HostReport{Name: name, State: orchestrator.HostState(state)})
	}
	return o
}

const threeHosts = `{"a": {"ansible_host": "192.0.2.1"}, "b": {"ansible_host": "192.0.2.2"}, "c": {"ansible_host": "192.0.2.3"}}`

// failedOn makes a run over hosts a, b and c whose step seq fails with o.
func failedOn(t *testing.T, l *Ledger, seq int, o orchestrator.Outcome) orchestrator.Run {
	t.Helper()
	addWorkspace(t, l, "edge")
	run := submitRun(t, l, "edge")
	for i := 1; i < seq; i++ {
		done := orchestrator.Outcome{}
		if i == 1 {
			done = captured(t, threeHosts)
		}
		finish(t, l, claim(t, l), done)
	}
	j := claim(t, l)
	for i := range o.Admit {
		o.Admit[i].Job = j.ID
	}
	finish(t, l, j, o)
	return run
}

// admitting adds admissions to an outcome.
func admitting(o orchestrator.Outcome, hosts ...string) orchestrator.Outcome {
	for _, h := range hosts {
		o.Admit = append(o.Admit, orchestrator.Admission{Workspace: "edge", Host: h, Login: orchestrator.LoginAutomation, Address: "192.0.2.1:22"})
	}
	return o
}

func TestOnlyTheFailedHostsAreResumed(t *testing.T) {
	for name, c := range map[string]struct {
		seq  int
		o    orchestrator.Outcome
		args []string
		want string // hosts, or what the refusal says
	}{
		"of the wait":             {2, failingOn("a=ready", "b=waiting", "c=ready"), nil, "b"},
		"of the onboarding":       {3, admitting(failingOn("a=ok", "b=changed", "c=failed"), "a", "b"), nil, "c"},
		"and those not admitted":  {3, admitting(failingOn("a=ok", "b=changed", "c=failed"), "a"), nil, "b c"},
		"of the play":             {4, failingOn("a=ok", "b=failed", "c=unreachable"), nil, "b c"},
		"and those not come to":   {4, failingOn("a=ok", "b=failed"), nil, "b c"},
		"but not out of a limit":  {4, failingOn("a=ok", "b=failed"), []string{"--limit=a,b"}, "b"},
		"a limit is the play's":   {2, failingOn("a=ready", "b=waiting"), []string{"--limit=a"}, "b c"},
		"a skipped one is well":   {4, failingOn("a=skipped", "b=failed", "c=ok"), nil, "b"},
		"none failed":             {4, failingOn("a=ok"), nil, "did not fail on a host"},
		"nothing is known":        {4, failure(), nil, "did not fail on a host"},
		"at the keys already":     {3, failingOn("a=pinned", "b=failed", "c=pinned"), nil, "had not begun on any host"},
		"the apply has no hosts":  {1, failure(), nil, "as a whole"},
		"an onboarding is a step": {3, failure(), nil, "did not fail on a host"},
	} {
		t.Run(name, func(t *testing.T) {
			l := openTest(t)
			run := failedOn(t, l, c.seq, c.o)
			r := orchestrator.ResumeRun{Run: run.ID, Spec: run.Spec, By: tester, FailedOnly: true}
			r.Spec.Args = c.args
			_, err := l.ResumeRun(t.Context(), r)
			if strings.Contains(c.want, "  ") || len(c.want) > 5 {
				wantCode(t, err, orchestrator.CodeRefused, c.want, "without --failed-only: exocomp provision resume edge")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := must(l.Run(t.Context(), run.ID))(t).Steps[c.seq-1]
			if strings.Join(got.Only, " ") != c.want || got.State != orchestrator.StepReady {
				t.Errorf("the step is %s for %v, want ready for %s", got.State, got.Only, c.want)
			}
		})
	}
}

// A crash in between keeps the limit, a second failure narrows it, a resume
// without it lifts it, and the steps behind have none.
func TestTheLimitHoldsUntilTheNextResume(t *testing.T) {
	l := openTest(t)
	run := failedOn(t, l, 2, failingOn("a=ready", "b=waiting", "c=waiting"))
	resume := func(failedOnly bool) {
		t.Helper()
		must(l.ResumeRun(t.Context(), orchestrator.ResumeRun{Run: run.ID, Spec: run.Spec, By: tester, FailedOnly: failedOnly}))(t)
	}
	only := func(want ...string) {
		t.Helper()
		if got := must(l.Run(t.Context(), run.ID))(t).Steps[1].Only; !slices.Equal(got, want) {
			t.Errorf("limited to %v, want %v", got, want)
		}
	}
	resume(true)
	j := claim(t, l)
	must(l.InterruptJob(t.Context(), j.ID, j.Attempt.Token, "power cut", true))(t)
	only("b", "c")
	finish(t, l, claim(t, l), failingOn("b=ready", "c=waiting"))
	resume(true)
	only("c")
	finish(t, l, claim(t, l), failingOn("b=pinned", "c=failed")) // as a step that pins fails at the keys
	resume(true)
	only("c")
	finish(t, l, claim(t, l), failure()) // which names no host
	resume(true)
	only("c")
	finish(t, l, claim(t, l), failingOn("c=waiting"))
	resume(false)
	only()
	finish(t, l, claim(t, l), failingOn("a=ready", "b=waiting", "c=ready"))
	resume(true)
	finish(t, l, claim(t, l), orchestrator.Outcome{})
	if s := must(l.Run(t.Context(), run.ID))(t).Steps; len(s[1].Only) != 1 || len(s[2].Only) != 0 || s[2].State != orchestrator.StepReady {
		t.Errorf("steps 2 and 3: %+v", s[1:3])
	}
}

func TestTheFailedHostsOfAnotherInventoryAreNotResumed(t *testing.T) {
	l := openTest(t)
	run := failedOn(t, l, 2, failingOn("a=ready", "b=waiting", "c=ready"))
	submitJob(t, l, orchestrator.JobWorkspaceApply, "edge")
	finish(t, l, claim(t, l), captured(t, rightHosts))
	_, err := l.ResumeRun(t.Context(), orchestrator.ResumeRun{Run: run.ID, Spec: run.Spec, By: tester, FailedOnly: true})
	wantCode(t, err, orchestrator.CodeRefused, "tf:edge has changed")
}

// A resource is told of a success only where every host had what it asks for.
func TestAResourcesHostsAllHaveTheSamePlaybook(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	r := newResource(t, l, "a")
	run := r.ensure(r.applying("a")).Run
	finish(t, l, claim(t, l), captured(t, threeHosts))
	finish(t, l, claim(t, l), orchestrator.Outcome{})
	finish(t, l, claim(t, l), orchestrator.Outcome{})
	finish(t, l, claim(t, l), failingOn("a=ok", "b=failed", "c=ok"))
	again := orchestrator.ResumeRun{Run: run.ID, Spec: spec("b"), By: tester, FailedOnly: true}
	_, err := l.ResumeRun(t.Context(), again)
	wantCode(t, err, orchestrator.CodeRefused, "exocomp_provision", "have changed")
	again.Spec = run.Spec
	must(l.ResumeRun(t.Context(), again))(t)
}
