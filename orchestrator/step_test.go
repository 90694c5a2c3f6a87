package orchestrator_test

import (
	"errors"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"pgregory.net/rapid"
)

// TestSucceededIsNeverLeft walks random histories: whatever happens to a step,
// once it succeeded no trigger moves it.
func TestSucceededIsNeverLeft(t *testing.T) {
	triggers := make([]orchestrator.StepTrigger, 0, len(orchestrator.StepTransitions))
	for _, tr := range orchestrator.StepTransitions {
		triggers = append(triggers, tr.Trigger)
	}
	rapid.Check(t, func(t *rapid.T) {
		state := orchestrator.StepBlocked
		for _, trigger := range rapid.SliceOf(rapid.SampledFrom(triggers)).Draw(t, "triggers") {
			next, err := state.Next(trigger)
			if err != nil {
				if !errors.Is(err, orchestrator.ErrConflict) {
					t.Fatalf("error %v is no conflict", err)
				}
				continue
			}
			if state == orchestrator.StepSucceeded {
				t.Fatalf("a succeeded step became %s by %s", next, trigger)
			}
			state = next
		}
	})
}

func TestEveryStateIsReachable(t *testing.T) {
	reached := map[orchestrator.StepState]bool{orchestrator.StepBlocked: true}
	for range orchestrator.StepTransitions {
		for _, tr := range orchestrator.StepTransitions {
			if reached[tr.From] {
				reached[tr.To] = true
			}
		}
	}
	for _, s := range orchestrator.StepStates {
		if !reached[s] {
			t.Errorf("%s cannot be reached", s)
		}
	}
}

func TestRunStateFollowsFromSteps(t *testing.T) {
	const (
		blocked   = orchestrator.StepBlocked
		ready     = orchestrator.StepReady
		running   = orchestrator.StepRunning
		awaiting  = orchestrator.StepAwaitingApproval
		succeeded = orchestrator.StepSucceeded
		failed    = orchestrator.StepFailed
		cancelled = orchestrator.StepCancelled
	)
	tests := []struct {
		steps []orchestrator.StepState
		want  orchestrator.RunState
	}{
		{[]orchestrator.StepState{blocked, blocked}, orchestrator.RunQueued},
		{[]orchestrator.StepState{ready, blocked}, orchestrator.RunRunning},
		{[]orchestrator.StepState{succeeded, blocked}, orchestrator.RunRunning},
		{[]orchestrator.StepState{succeeded, running}, orchestrator.RunRunning},
		{[]orchestrator.StepState{awaiting, blocked}, orchestrator.RunAwaitingApproval},
		{[]orchestrator.StepState{succeeded, failed, blocked}, orchestrator.RunFailed},
		{[]orchestrator.StepState{succeeded, cancelled, cancelled}, orchestrator.RunCancelled},
		{[]orchestrator.StepState{succeeded, succeeded}, orchestrator.RunSucceeded},
	}
	for _, tt := range tests {
		if got := orchestrator.RunStateOf(tt.steps); got != tt.want {
			t.Errorf("RunStateOf(%v) = %s, want %s", tt.steps, got, tt.want)
		}
	}
}

// TestEveryRunKindHasItsSteps: a kind without any, or without an apply before its
// play, would be a run that ends before it began.
func TestEveryRunKindHasItsSteps(t *testing.T) {
	for _, kind := range orchestrator.RunKinds {
		steps := kind.Steps()
		if len(steps) < 2 || steps[0] != orchestrator.StepTofuApply || steps[len(steps)-1] != orchestrator.StepAnsiblePlay {
			t.Errorf("a %s has the steps %v", kind, steps)
		}
	}
}
