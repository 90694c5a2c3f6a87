package ledger

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/inventory"
)

// captured is what an apply captures whose output hosts holds hosts, as JSON.
func captured(t *testing.T, hosts string) orchestrator.Outcome {
	t.Helper()
	inv, err := inventory.Derive("edge", map[string]inventory.Output{"hosts": {Value: json.RawMessage(hosts)}})
	if err != nil {
		t.Fatal(err)
	}
	content, err := inventory.Render(inv)
	if err != nil {
		t.Fatal(err)
	}
	return orchestrator.Outcome{Inventory: &orchestrator.Inventory{
		Digest: inventory.Digest(content), Content: content, Path: "/a/edge.json", Hosts: inv.HostNames(), Captured: 1,
	}}
}

const (
	wrongHosts = `{"web1": {"ansible_host": "192.0.2.1"}}`
	rightHosts = `{"web1": {"ansible_host": "192.0.2.2"}, "web2": {"ansible_host": "192.0.2.3"}}`
)

// failedAt makes a run that fails at a step, and after it an apply by hand that
// captures what next is.
func failedAt(t *testing.T, l *Ledger, seq int, next orchestrator.Outcome) orchestrator.Run {
	t.Helper()
	addWorkspace(t, l, "edge")
	run := submitRun(t, l, "edge")
	finish(t, l, claim(t, l), captured(t, wrongHosts))
	for range seq - 2 {
		finish(t, l, claim(t, l), orchestrator.Outcome{})
	}
	finish(t, l, claim(t, l), failure())
	submitJob(t, l, orchestrator.JobWorkspaceApply, "edge")
	finish(t, l, claim(t, l), next)
	return run
}

func TestAStepThatAsksForAnotherInventoryIsResumedWithIt(t *testing.T) {
	for seq := 2; seq <= 3; seq++ {
		t.Run(fmt.Sprint("step ", seq), func(t *testing.T) {
			l := openTest(t)
			next := captured(t, rightHosts)
			run := failedAt(t, l, seq, next)
			resumed := must(l.ResumeRun(t.Context(), orchestrator.ResumeRun{Run: run.ID, Spec: run.Spec, By: tester}))(t)
			if got := must(l.Run(t.Context(), run.ID))(t).Inventory; got != next.Inventory.Digest || resumed.Inventory != got {
				t.Errorf("the run requires %s, and says %s, want the newest, %s", got, resumed.Inventory, next.Inventory.Digest)
			}
			events := must(l.Events(t.Context(), orchestrator.EventFilter{Run: run.ID}))(t)
			said := ""
			for _, e := range events {
				if e.Kind == orchestrator.EventRunResumed {
					said = e.Message
				}
			}
			if !strings.Contains(said, "→ "+next.Inventory.Digest+", naming 2 host(s)") {
				t.Errorf("the event says %q, want the new inventory", said)
			}
		})
	}
}

func TestAPlayIsNotResumedWithAnotherInventory(t *testing.T) {
	l := openTest(t)
	run := failedAt(t, l, 4, captured(t, rightHosts))
	resume := func() error {
		_, err := l.ResumeRun(t.Context(), orchestrator.ResumeRun{Run: run.ID, Spec: run.Spec, By: tester})
		return err
	}
	err := resume()
	wantCode(t, err, orchestrator.CodeConflict, "has changed", "exocomp provision run edge /src/site.yml")
	if strings.Contains(err.Error(), "resume") {
		t.Errorf("%q sends back to resume", err)
	}
	submitJob(t, l, orchestrator.JobWorkspaceApply, "edge")
	finish(t, l, claim(t, l), captured(t, wrongHosts)) // what its hosts were onboarded for
	if err := resume(); err != nil {
		t.Fatal(err)
	}
}

// What a chain's capture refuses does not come in by a resume.
func TestAResumeGrantsNoKeyFileByItself(t *testing.T) {
	l := openTest(t)
	const file = "/root/.ssh/id_ed25519"
	run := failedAt(t, l, 3, captured(t, `{"web1": {"ansible_host": "192.0.2.2", "ansible_ssh_private_key_file": "`+file+`"}}`))
	r := orchestrator.ResumeRun{Run: run.ID, Spec: run.Spec, By: tester}
	_, err := l.ResumeRun(t.Context(), r)
	wantCode(t, err, orchestrator.CodeRefused, "web1", "--ssh-identity "+file)
	r.Spec.SSHIdentities = []string{file}
	must(l.ResumeRun(t.Context(), r))(t)
}

// A resource whose run failed at the play, and whose workspace was applied since,
// gets a run of its own instead of a refusal for ever.
func TestAResourceStartsAnewWhereItsPlayRequiresAnotherInventory(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	r := newResource(t, l, "a")
	first := r.ensure(r.applying("a")).Run
	finish(t, l, claim(t, l), captured(t, wrongHosts))
	finish(t, l, claim(t, l), orchestrator.Outcome{})
	finish(t, l, claim(t, l), orchestrator.Outcome{})
	finish(t, l, claim(t, l), failure())
	submitJob(t, l, orchestrator.JobWorkspaceApply, "edge")
	finish(t, l, claim(t, l), captured(t, rightHosts))
	if again := r.ensure(r.applying("a")).Run; again.ID == first.ID {
		t.Errorf("it is answered with %s (%s), want a new run", again.ID, again.State)
	}
}

func TestANewAttemptShowsNoResultOfTheOneBefore(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	run := submitRun(t, l, "edge")
	o := failure()
	o.Report = &orchestrator.Report{Summary: "1 host(s): 1 failed"}
	first := finish(t, l, claim(t, l), o)
	must(l.ResumeRun(t.Context(), orchestrator.ResumeRun{Run: run.ID, Spec: run.Spec, By: tester}))(t)
	j := claim(t, l)
	if s := must(l.Run(t.Context(), run.ID))(t).Steps[0]; s.State != orchestrator.StepRunning || s.Report != nil {
		t.Errorf("the second attempt is %s and shows %+v, want nothing yet", s.State, s.Report)
	}
	if first = must(l.Job(t.Context(), first.ID))(t); first.Report == nil {
		t.Error("the first attempt's job has lost its result")
	}
	finish(t, l, j, orchestrator.Outcome{})
}
