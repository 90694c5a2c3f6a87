package ledger

import (
	"context"

	"github.com/exocomp/exocomp/orchestrator"
)

// FinishJob records how an attempt ended: everything in o, the job's and its
// step's new state, and what follows from it: the next step's release, or the
// end of the run and the next in the workspace's queue. Only the live attempt's
// token is heard, once; otherwise it is a [orchestrator.CodeConflict] and
// nothing changes.
func (l *Ledger) FinishJob(ctx context.Context, id orchestrator.JobID, token orchestrator.Secret, o orchestrator.Outcome) (orchestrator.Job, error) {
	var j jobRow
	err := l.writeAlways(ctx, "finish job", func(t *tx) (err error) {
		if j, err = t.live(ctx, id, token); err != nil {
			return err
		}
		if err := t.finish(ctx, j, o); err != nil {
			return err
		}
		j, err = jobByID(ctx, t, id)
		return err
	})
	return j.public(), err
}

// ending is the state and the trigger of an outcome.
func ending(o orchestrator.Outcome) (orchestrator.JobState, orchestrator.StepTrigger) {
	switch {
	case o.Succeeded():
		return orchestrator.JobSucceeded, orchestrator.TriggerSucceed
	case o.Failure.Code == orchestrator.CodeCancelled:
		return orchestrator.JobCancelled, orchestrator.TriggerCancel
	default:
		return orchestrator.JobFailed, orchestrator.TriggerFail
	}
}

func (t *tx) finish(ctx context.Context, j jobRow, o orchestrator.Outcome) error {
	state, trigger := ending(o)
	if err := t.record(ctx, j, o); err != nil {
		return err
	}
	if err := t.moveJob(ctx, &j, state, o.Failure, o.Report); err != nil {
		return err
	}
	if j.Run != "" {
		return t.endStep(ctx, j, trigger, o.Failure, o.Report)
	}
	return t.closeTurn(ctx, j.turn, j.Workspace)
}

// record stores what an attempt found out, however it ended.
func (t *tx) record(ctx context.Context, j jobRow, o orchestrator.Outcome) error {
	if o.Inventory != nil {
		if err := t.captureInventory(ctx, j.event("", ""), *o.Inventory); err != nil {
			return err
		}
	}
	if len(o.Retire) > 0 {
		about := j.event("", "")
		if err := t.leavePins(ctx, about, o.Retire, "its host left "+orchestrator.InventoryName(j.Workspace)); err != nil {
			return err
		}
	}
	if err := t.admit(ctx, j, o.Admit); err != nil {
		return err
	}
	if err := t.findLost(ctx, j.event("", ""), o.Found); err != nil {
		return err
	}
	if err := t.suspectLost(ctx, j, o.Lost); err != nil {
		return err
	}
	for _, text := range o.Warnings {
		e := j.event(orchestrator.EventJobProgress, text)
		e.Warning = true
		if err := t.event(ctx, e); err != nil {
			return err
		}
	}
	return nil
}
