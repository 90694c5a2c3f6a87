package engine

import (
	"context"

	"github.com/exocomp/exocomp/orchestrator"
)

// PinLedger is what a [PinStore] changes in the ledger.
type PinLedger interface {
	PinsAt(ctx context.Context, host string, port int) ([]orchestrator.Pin, error)
	AddPins(ctx context.Context, job orchestrator.JobID, pins []orchestrator.Pin) error
	RetirePins(ctx context.Context, pins []orchestrator.Pin, reason string, by orchestrator.Peer) error
	RotatePin(ctx context.Context, old []orchestrator.Pin, pin orchestrator.Pin, by orchestrator.Peer) error
	AppendEvent(ctx context.Context, e orchestrator.Event) error
}

// PinStore is the ledger's pins with known_hosts published after each change.
type PinStore struct {
	PinLedger
	Engine *Engine
}

// AddPins records pins and publishes them.
func (s PinStore) AddPins(ctx context.Context, job orchestrator.JobID, pins []orchestrator.Pin) error {
	return s.Engine.Commit(ctx, func() error { return s.PinLedger.AddPins(ctx, job, pins) })
}

// RetirePins retires pins and publishes the others.
func (s PinStore) RetirePins(ctx context.Context, pins []orchestrator.Pin, reason string, by orchestrator.Peer) error {
	return s.Engine.Commit(ctx, func() error { return s.PinLedger.RetirePins(ctx, pins, reason, by) })
}

// RotatePin replaces pins by another and publishes it.
func (s PinStore) RotatePin(ctx context.Context, old []orchestrator.Pin, pin orchestrator.Pin, by orchestrator.Peer) error {
	return s.Engine.Commit(ctx, func() error { return s.PinLedger.RotatePin(ctx, old, pin, by) })
}
