package engine

import (
	"context"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/hostkeys"
)

// PinStore is the ledger's pins with known_hosts published after each change.
type PinStore struct {
	hostkeys.Store
	Engine *Engine
}

// ChangePins makes the changes and publishes known_hosts once.
func (s PinStore) ChangePins(ctx context.Context, c orchestrator.PinChanges) error {
	return s.Engine.Commit(ctx, func() error { return s.Store.ChangePins(ctx, c) })
}
