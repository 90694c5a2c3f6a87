package daemon

import (
	"context"

	"github.com/exocomp/exocomp/orchestrator"
)

// ListEvents implements [rpc.Events].
func (d *Daemon) ListEvents(ctx context.Context, filter orchestrator.EventFilter) ([]orchestrator.Event, error) {
	events, err := d.ledger.Events(ctx, filter)
	return settled(ctx, d, events, err)
}

// watchBatch bounds how many events are read at once.
const watchBatch = 1000

// WatchEvents implements [rpc.Events].
func (d *Daemon) WatchEvents(ctx context.Context, filter orchestrator.EventFilter, send func(orchestrator.Event) error) error {
	filter.Limit, filter.Newest = watchBatch, 0
	for {
		changed := d.ledger.Changed()
		events, err := d.ledger.Events(ctx, filter)
		if err != nil {
			return err
		}
		if err := d.engine.Settled(ctx); err != nil {
			return err
		}
		for _, e := range events {
			if err := send(e); err != nil {
				return err
			}
			filter.After = e.ID
		}
		if len(events) == watchBatch {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}
