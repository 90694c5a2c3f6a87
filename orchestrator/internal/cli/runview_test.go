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
