package orchestrator

import (
	"errors"
	"strings"
)

// Outcome is how an attempt ended, as its handler tells it. Exactly one of the
// ends is meant: success where Failure is nil, otherwise failure, or
// cancellation where the failure's code is [CodeCancelled].
//
// Everything in it is recorded in one transaction with the job's and the
// step's new state, the release of the next step and their events.
type Outcome struct {
	Failure   *Failure
	Report    *Report
	Inventory *Inventory   // captured by an apply
	Retire    []Pin        // pins of hosts that left with the capture
	Admit     []Admission  // hosts that an onboarding admits
	Lost      []LostCreate // creates that the state may lack
	Found     []string     // formerly lost addresses that are in the state now, or accepted
	Warnings  []string     // each becomes a warning event
}

// Succeeded reports whether the attempt did its work.
func (o Outcome) Succeeded() bool { return o.Failure == nil }

// Fail returns a failed outcome for err, keeping its code, message and hint.
func Fail(err error, report *Report) Outcome {
	f := FailureOf(err)
	return Outcome{Failure: f, Report: report}
}

// FailureOf returns err as the ledger keeps it, nil for nil: the code and hint
// of the first [Error] in its chain, and the whole message without the hint.
func FailureOf(err error) *Failure {
	if err == nil {
		return nil
	}
	f := &Failure{Code: CodeInternal, Message: err.Error()}
	var e *Error
	if errors.As(err, &e) {
		f.Code, f.Hint = e.Code, e.Hint
		f.Message = strings.TrimSuffix(f.Message, "; "+e.Hint)
	}
	return f
}
