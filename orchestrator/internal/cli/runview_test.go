package cli

import (
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

func TestAFailedRunIsSentToResumeOnlyWhereThatHelps(t *testing.T) {
	for hint, want := range map[string]bool{
		"": true,
		"check it out of band, then: exocomp host onboard --rotate edge/web1":                    true,
		"name hosts, then: exocomp workspace apply edge --wait && exocomp provision resume edge": false,
		"start another run: exocomp provision run edge /src/site.yml":                            false,
	} {
		var b strings.Builder
		printRun(&b, orchestrator.Run{ID: "run_01", Workspace: "edge", State: orchestrator.RunFailed, Steps: []orchestrator.Step{{
			Seq: 1, Kind: orchestrator.StepSSHWait, State: orchestrator.StepFailed,
			Failure: &orchestrator.Failure{Code: orchestrator.CodeFailed, Message: "it broke", Hint: hint},
		}}})
		if got := strings.Contains(b.String(), "then  exocomp provision resume run_01"); got != want {
			t.Errorf("hint %q: sent to resume: %v, want %v\n%s", hint, got, want, b.String())
		}
	}
}

// TestAFailureIsToldOnce: what the step's line says is not said again by its
// hosts and the last lines; what it does not say is.
func TestAFailureIsToldOnce(t *testing.T) {
	const why = "connection refused by 192.0.2.1:22"
	for name, tt := range map[string]struct {
		message string
		report  orchestrator.Report
		want    string
	}{
		"one host": {
			"SSH did not answer within 5s on 1 of 1 host(s): web1: " + why,
			orchestrator.Report{Hosts: []orchestrator.HostReport{
				{Name: "here", State: orchestrator.HostSkipped},
				{Name: "web1", Address: "192.0.2.1:22", State: orchestrator.HostWaiting, Message: why},
			}, LastLines: []string{"  web1: " + why, "and a line of its own"}},
			"  host  web1: waiting at 192.0.2.1:22\n  last lines\n  │ and a line of its own\n",
		},
		"many": {
			"2 of 3 hosts failed:\n  web1: " + why + "\n  web2",
			orchestrator.Report{Hosts: []orchestrator.HostReport{
				{Name: "web1", State: orchestrator.HostFailed, Message: why},
				{Name: "web2", State: orchestrator.HostFailed, Message: "something else", Task: "Greet"},
				{Name: "web3", State: orchestrator.HostOK},
			}},
			"       web1: " + why + "\n       web2\n  host  web1: failed\n  host  web2: failed in task \"Greet\": something else\n  host  1 more without failure\n",
		},
		"a task": {
			"task \"Greet\" failed on web1",
			orchestrator.Report{Task: "Greet", Hosts: []orchestrator.HostReport{{Name: "web1", State: orchestrator.HostFailed, Task: "Greet", Message: "no"}}},
			"  task  Greet\n  host  web1: failed: no\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			printFailure(&b, &orchestrator.Failure{Code: orchestrator.CodeFailed, Message: tt.message}, &tt.report)
			if got := b.String(); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}
