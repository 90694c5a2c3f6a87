package e2e

import (
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// TestFailureOfAPlayIsExplainedAndResumed: status names step, host, task and
// last lines; a corrected playbook goes on at the failed step, and nothing
// before it is done again.
func TestFailureOfAPlayIsExplainedAndResumed(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	s.start()
	h := s.host("web1")
	applies, onboards := s.gate("apply"), s.hostGate(h, "onboard")
	s.infra("edge", map[string]vars{"web1": hostVars(h)}, resource("count", applies.count()))
	onboarding := s.playbook("onboarding", rawPlay("all", onboards.count()))
	play := func(second string) string {
		return s.playbook("p", strings.ReplaceAll(rawPlay("tf:edge", "true", second), "Line 2", "Break the thing"))
	}

	r, run := s.provision("edge", play("echo it is really broken >&2; exit 7"), "--onboard-playbook", onboarding)
	s.holds(r.code == 1, "a failed chain ends with exit code 1", r)
	if run.State != orchestrator.RunFailed || run.Steps[3].Report == nil || run.Steps[3].Failure == nil {
		t.Fatalf("run: %+v", run)
	}
	step := run.Steps[3]
	failure, report := step.Failure, step.Report
	s.holds(failure.Code == orchestrator.CodeFailed && strings.Contains(failure.Message, "Break the thing") && strings.Contains(failure.Message, "web1"),
		"the failure names task and host", failure)
	s.holds(report.Task == "Break the thing", "the report names the task", report)
	s.holds(len(report.Hosts) == 1 && report.Hosts[0].Name == "web1" && report.Hosts[0].State == orchestrator.HostFailed && report.Hosts[0].Task == report.Task,
		"the report names the host that failed and in which task", report.Hosts)
	s.holds(strings.Contains(strings.Join(report.LastLines, "\n"), "it is really broken"), "the report has the last lines", report.LastLines)

	text := s.ok("provision", "status", "edge").stdout
	for _, part := range []string{
		"4  ansible-play", "failed", "task  Break the thing", "host  web1: failed",
		"it is really broken", "exocomp jobs logs " + string(step.Job), "exocomp provision resume " + string(run.ID),
	} {
		s.holds(strings.Contains(text, part), "status says "+part, text)
	}
	s.holds(strings.Contains(r.stdout, "Break the thing"), "--wait ends with the same view", r)

	before := len(h.Logins())
	play("echo repaired")
	s.ok("provision", "resume", "edge", "--wait")
	resumed := s.run("edge")
	s.holds(resumed.ID == run.ID && resumed.State == orchestrator.RunSucceeded, "the same run succeeds after its resume", resumed)
	for i, want := range []int{1, 1, 1, 2} {
		s.holds(resumed.Steps[i].Attempts == want, string(resumed.Steps[i].Kind)+" was run as often as it had to be", resumed.Steps[i])
	}
	applies.ran(1)
	onboards.ran(1)
	s.holds(len(h.Logins()) == before+1, "only the play logged in after the resume", h.Logins()[before:])
	e := s.awaitEvent("of the resume", func(e orchestrator.Event) bool { return e.Kind == orchestrator.EventRunResumed }, "--run", string(run.ID))
	s.holds(strings.Contains(e.Message, run.Spec.Playbook.Digest) && strings.Contains(e.Message, resumed.Spec.Playbook.Digest) &&
		run.Spec.Playbook.Digest != resumed.Spec.Playbook.Digest, "the event carries old and new digest", e)

	refused := s.fails(4, []string{"succeeded"}, "provision", "resume", "edge")
	s.assertSentence(refused)
}
