package engine

import (
	"context"
	"errors"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/fault"
)

// publishLimit bounds how long anybody waits for a publication, and how long one
// reads the ledger.
const publishLimit = 10 * time.Second

// settle takes the lock of who commits and then publishes. The caller releases
// it. It gives up when ctx ends or after a while: a disk that hangs must not
// make everybody hang.
func (e *Engine) settle(ctx context.Context) (release func(), err error) {
	limit := time.NewTimer(publishLimit)
	defer limit.Stop()
	select {
	case e.settled <- struct{}{}:
		return func() { <-e.settled }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-limit.C:
		return nil, orchestrator.Errorf(orchestrator.CodeTimeout, "a published file takes longer than %s to write", publishLimit).
			WithHint("look after the disk of the data directory")
	}
}

// Settled returns once everything that was committed before the call is
// published. Who reads a state from the ledger and shows it to somebody calls
// it in between.
func (e *Engine) Settled(ctx context.Context) error {
	release, err := e.settle(ctx)
	if err != nil {
		return err
	}
	release()
	return nil
}

// FinishJob records an outcome and publishes what it changed.
func (e *Engine) FinishJob(ctx context.Context, id orchestrator.JobID, token orchestrator.Secret, o orchestrator.Outcome) (orchestrator.Job, error) {
	release, err := e.settle(ctx)
	if err != nil {
		return orchestrator.Job{}, err
	}
	defer release()
	job, err := e.Ledger.FinishJob(ctx, id, token, o)
	if err != nil {
		return job, err
	}
	fault.Point(fault.AfterRelease, job.Work())
	ctx, cancel := publishing(ctx)
	defer cancel()
	if o.Inventory != nil {
		e.writeInventory(ctx, job.Workspace)
	}
	if len(o.Retire) > 0 {
		e.publishPins(ctx)
	}
	return job, nil
}

// Commit runs a change of the ledger and publishes known_hosts after it, also
// where the change failed half-way.
func (e *Engine) Commit(ctx context.Context, change func() error) error {
	release, err := e.settle(ctx)
	if err != nil {
		return err
	}
	defer release()
	err = change()
	ctx, cancel := publishing(ctx)
	defer cancel()
	e.publishPins(ctx)
	return err
}

// Withdraw runs a change that removes a workspace, takes its published inventory
// back and publishes known_hosts.
func (e *Engine) Withdraw(ctx context.Context, workspace string, change func() error) error {
	return e.Commit(ctx, func() error {
		err := change()
		if err == nil {
			e.published("the end of "+orchestrator.InventoryName(workspace), e.cfg.Publisher.Remove(workspace))
		}
		return err
	})
}

// CommitInventory is [Engine.Commit] of a change that may replace the inventory
// of a workspace, which it publishes too.
func (e *Engine) CommitInventory(ctx context.Context, workspace string, change func() error) error {
	return e.Commit(ctx, func() error {
		if err := change(); err != nil {
			return err
		}
		ctx, cancel := publishing(ctx)
		defer cancel()
		e.writeInventory(ctx, workspace)
		return nil
	})
}

// publishHanded publishes a workspace's inventory, and known_hosts, which hosts
// may have left with it.
func (e *Engine) publishHanded(ctx context.Context, workspace string) error {
	release, err := e.settle(ctx)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := publishing(ctx)
	defer cancel()
	e.writeInventory(ctx, workspace)
	e.publishPins(ctx)
	return nil
}

// writeInventory writes a workspace's inventory anew, if it has one. The caller
// holds settled.
func (e *Engine) writeInventory(ctx context.Context, workspace string) {
	inv, err := e.Inventory(ctx, workspace)
	if errors.Is(err, orchestrator.ErrNotFound) {
		return
	}
	if err == nil {
		err = e.cfg.Publisher.Inventory(ctx, inv)
	}
	e.published("inventory "+orchestrator.InventoryName(workspace), err)
}

// publishing returns the context of a publication. It outlives ctx: what is
// committed is published, whether or not anybody still waits for it.
func publishing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), publishLimit)
}

// publishPins writes known_hosts anew. The caller holds settled.
func (e *Engine) publishPins(ctx context.Context) {
	pins, err := e.Pins(ctx, orchestrator.PinFilter{})
	if err == nil {
		err = e.cfg.Publisher.Pins(ctx, pins)
	}
	e.published("known_hosts", err)
}

// publishStale publishes everything that the ledger holds, where something is
// not published yet. It only fails where its turn does not come.
func (e *Engine) publishStale(ctx context.Context) error {
	release, err := e.settle(ctx)
	if err != nil {
		return err
	}
	defer release()
	if !e.stale {
		return nil
	}
	ctx, cancel := publishing(ctx)
	defer cancel()
	e.stale = false
	invs, err := e.Inventories(ctx)
	pins, perr := e.Pins(ctx, orchestrator.PinFilter{})
	if err = errors.Join(err, perr); err == nil {
		err = e.cfg.Publisher.All(ctx, invs, pins)
	}
	e.published("inventories and known_hosts", err)
	return nil
}

// published notes how a publication went. A failure loses nothing, since the
// ledger is the truth; it is logged here and tried again.
func (e *Engine) published(what string, err error) {
	if err != nil {
		e.stale = true
		e.cfg.Logger.Error("publish "+what+": it will be tried again", "err", err)
	}
}
