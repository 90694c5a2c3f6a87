package engine

import (
	"context"
	"errors"

	"github.com/exocomp/exocomp/orchestrator"
)

// Settled returns once everything that was committed before the call is
// published. Who reads a state from the ledger and shows it to somebody calls
// it in between.
func (e *Engine) Settled() {
	e.settled.RLock()
	defer e.settled.RUnlock()
}

// FinishJob records an outcome and publishes what it changed.
func (e *Engine) FinishJob(ctx context.Context, id orchestrator.JobID, token orchestrator.Secret, o orchestrator.Outcome) (orchestrator.Job, error) {
	e.settled.Lock()
	defer e.settled.Unlock()
	job, err := e.Ledger.FinishJob(ctx, id, token, o)
	if err != nil {
		return job, err
	}
	if o.Inventory != nil {
		inv, err := e.Inventory(ctx, job.Workspace)
		if err == nil {
			err = e.cfg.Publisher.Inventory(ctx, inv)
		}
		e.published("inventory "+orchestrator.InventoryName(job.Workspace), err)
	}
	if len(o.Retire) > 0 {
		e.publishPins(ctx)
	}
	return job, nil
}

// Commit runs a change of pins or inventories and publishes everything after
// it, also where the change failed half-way.
func (e *Engine) Commit(ctx context.Context, change func() error) error {
	e.settled.Lock()
	defer e.settled.Unlock()
	err := change()
	e.publishPins(ctx)
	return err
}

// publishPins writes known_hosts anew. The caller holds settled.
func (e *Engine) publishPins(ctx context.Context) {
	pins, err := e.Pins(ctx, orchestrator.PinFilter{})
	if err == nil {
		err = e.cfg.Publisher.Pins(ctx, pins)
	}
	e.published("known_hosts", err)
}

func (e *Engine) publishAll(ctx context.Context) {
	e.settled.Lock()
	defer e.settled.Unlock()
	e.stale = false
	invs, err := e.Inventories(ctx)
	pins, perr := e.Pins(ctx, orchestrator.PinFilter{})
	if err = errors.Join(err, perr); err == nil {
		err = e.cfg.Publisher.All(ctx, invs, pins)
	}
	e.published("inventories and known_hosts", err)
}

// published notes how a publication went. A failure loses nothing, since the
// ledger is the truth; it is logged here and tried again.
func (e *Engine) published(what string, err error) {
	if err != nil {
		e.stale = true
		e.cfg.Logger.Error("publish "+what+": it will be tried again", "err", err)
	}
}
