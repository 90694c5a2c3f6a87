package onboard

import (
	"context"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// history is a Ledger of runs, the newest first.
type history struct {
	Ledger
	runs []orchestrator.Run
}

func (h history) Runs(_ context.Context, f orchestrator.RunFilter) (out []orchestrator.Run, _ error) {
	for _, r := range h.runs {
		if f.State == "" || r.State == f.State {
			out = append(out, r)
		}
	}
	return out, nil
}

func TestSettingsAreTheNewestSucceededRunsElseTheNewest(t *testing.T) {
	run := func(state orchestrator.RunState, identity string) orchestrator.Run {
		return orchestrator.Run{State: state, Spec: orchestrator.RunSpec{SSHIdentities: []string{identity}}}
	}
	failed, older, succeeded := run(orchestrator.RunFailed, "/failed"), run(orchestrator.RunFailed, "/older"), run(orchestrator.RunSucceeded, "/succeeded")
	for want, runs := range map[string][]orchestrator.Run{
		"/succeeded": {failed, succeeded, older},
		"/failed":    {failed, older},
		"":           nil,
	} {
		spec, err := (&Handler{Ledger: history{runs: runs}}).settings(t.Context(), "edge")
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if len(spec.SSHIdentities) > 0 {
			got = spec.SSHIdentities[0]
		}
		if got != want {
			t.Errorf("settings of %q, want of %q", got, want)
		}
	}
}
