package engine

import (
	"context"
	"time"
)

// abandon cancels the runs of deleted resources that no create claims in time.
// Whoever releases one is followed by a change of the ledger.
func (e *Engine) abandon(ctx context.Context) error {
	for {
		changed := e.Changed()
		next, err := e.AbandonRuns(ctx)
		if err != nil && ctx.Err() == nil {
			e.cfg.Logger.Error("cancel unclaimed runs", "err", err)
			next = time.Now().Add(republishInterval)
		}
		var due <-chan time.Time
		if !next.IsZero() {
			due = time.After(max(time.Until(next), time.Second))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-due:
		}
	}
}

// Lend gives the worker of a job whose tool waits for another job to that one,
// until back is called.
func (e *Engine) Lend() (back func()) { return e.pool.Lend() }
