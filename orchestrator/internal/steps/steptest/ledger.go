package steptest

import (
	"context"
	"sync"

	"github.com/exocomp/exocomp/orchestrator"
)

// Ledger is what handlers and the runner read, in memory. Like the real one it
// answers a context that has ended with its error.
type Ledger struct {
	Row      orchestrator.Workspace
	Chain    orchestrator.Run
	Inv      orchestrator.Inventory
	Admitted []orchestrator.Admission

	mu     sync.Mutex
	pins   []orchestrator.Pin
	pinned int    // changes of pins
	calls  int    // of any method
	endAt  int    // the call in which end is called; 0 for none
	end    func() // ends the handler's context
}

func (l *Ledger) call(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	if l.endAt != 0 && l.calls == l.endAt {
		l.end()
	}
	return ctx.Err()
}

// Workspace returns Row.
func (l *Ledger) Workspace(ctx context.Context, _ string) (orchestrator.Workspace, error) {
	return l.Row, l.call(ctx)
}

// Run returns Chain.
func (l *Ledger) Run(ctx context.Context, _ orchestrator.RunID) (orchestrator.Run, error) {
	return l.Chain, l.call(ctx)
}

// Runs returns Chain alone.
func (l *Ledger) Runs(ctx context.Context, _ orchestrator.RunFilter) ([]orchestrator.Run, error) {
	return []orchestrator.Run{l.Chain}, l.call(ctx)
}

// Inventory returns Inv.
func (l *Ledger) Inventory(ctx context.Context, _ string) (orchestrator.Inventory, error) {
	return l.Inv, l.call(ctx)
}

// Admissions returns Admitted.
func (l *Ledger) Admissions(ctx context.Context, _ string) ([]orchestrator.Admission, error) {
	return l.Admitted, l.call(ctx)
}

// Pins returns every pin.
func (l *Ledger) Pins(ctx context.Context, _ orchestrator.PinFilter) ([]orchestrator.Pin, error) {
	if err := l.call(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]orchestrator.Pin(nil), l.pins...), nil
}

// ChangePins adds pins; it can do nothing else.
func (l *Ledger) ChangePins(ctx context.Context, c orchestrator.PinChanges) error {
	if err := l.call(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pins = append(l.pins, c.Add...)
	l.pinned++
	return nil
}

// queue is a queue in which every call succeeds; handlers are called without a
// pool.
type queue struct{}

func (queue) ClaimJob(context.Context) (*orchestrator.Job, error) { return nil, nil }
func (queue) SetPhase(context.Context, orchestrator.JobID, orchestrator.Secret, string) error {
	return nil
}
func (queue) FinishJob(context.Context, orchestrator.JobID, orchestrator.Secret, orchestrator.Outcome) (orchestrator.Job, error) {
	return orchestrator.Job{}, nil
}
func (queue) InterruptJob(context.Context, orchestrator.JobID, orchestrator.Secret, string, bool) (orchestrator.Job, error) {
	return orchestrator.Job{}, nil
}
func (queue) RunningJobs(context.Context) ([]orchestrator.Job, error) { return nil, nil }
func (queue) Job(context.Context, orchestrator.JobID) (orchestrator.Job, error) {
	return orchestrator.Job{}, nil
}
func (queue) Adopted(context.Context, orchestrator.JobID, string) error          { return nil }
func (queue) Progress(context.Context, orchestrator.JobID, string, string) error { return nil }
func (queue) Draining(context.Context) (bool, error)                             { return false, nil }
func (queue) Changed() <-chan struct{}                                           { return nil }
