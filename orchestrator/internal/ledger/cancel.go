package ledger

import (
	"context"

	"github.com/exocomp/exocomp/orchestrator"
)

// CancelRun ends a run. Where a step runs, its job is asked to end and the run
// is cancelled when it has; otherwise it is cancelled at once. Asking again
// changes nothing, except that force may be added. A final run is a
// [orchestrator.CodeConflict].
func (l *Ledger) CancelRun(ctx context.Context, id orchestrator.RunID, force bool, by orchestrator.Peer) (run orchestrator.Run, err error) {
	err = l.writeAlways(ctx, "cancel run", func(t *tx) (err error) {
		run, err = t.cancelRun(ctx, id, force, by)
		return err
	})
	return run, err
}

func (t *tx) cancelRun(ctx context.Context, id orchestrator.RunID, force bool, by orchestrator.Peer) (orchestrator.Run, error) {
	run, err := runByID(ctx, t, id)
	if err != nil {
		return run, err
	}
	if run.State.Final() {
		return run, orchestrator.Errorf(orchestrator.CodeConflict, "run %s %s already", id, ended(string(run.State))).
			WithHint("look at it: exocomp provision status %s", id)
	}
	for i := range run.Steps {
		if s := &run.Steps[i]; s.State == orchestrator.StepRunning {
			j, err := jobByID(ctx, t, s.Job)
			if err != nil {
				return run, err
			}
			return run, t.requestCancel(ctx, &j, force, by)
		}
	}
	return run, t.cancelSteps(ctx, &run, cancelled("cancelled by %s", who(by)))
}

// CancelJob ends a job: a queued one at once, a running one by asking it to. A
// step's job takes its run with it, see [Ledger.CancelRun]. A final job is a
// [orchestrator.CodeConflict].
func (l *Ledger) CancelJob(ctx context.Context, id orchestrator.JobID, force bool, by orchestrator.Peer) (orchestrator.Job, error) {
	var j jobRow
	err := l.writeAlways(ctx, "cancel job", func(t *tx) (err error) {
		if j, err = jobByID(ctx, t, id); err != nil {
			return err
		}
		switch {
		case j.State.Final():
			return orchestrator.Errorf(orchestrator.CodeConflict, "job %s %s already", id, ended(string(j.State))).
				WithHint("look at it: exocomp jobs show %s", id)
		case j.Run != "":
			if _, err := t.cancelRun(ctx, j.Run, force, by); err != nil {
				return err
			}
			j, err = jobByID(ctx, t, id)
			return err
		case j.State == orchestrator.JobRunning:
			return t.requestCancel(ctx, &j, force, by)
		default:
			if err := t.moveJob(ctx, &j, orchestrator.JobCancelled, cancelled("cancelled by %s", who(by)), nil); err != nil {
				return err
			}
			return t.closeTurn(ctx, j.turn, j.Workspace)
		}
	})
	return j.public(), err
}

// requestCancel marks a running job for its worker to see.
func (t *tx) requestCancel(ctx context.Context, j *jobRow, force bool, by orchestrator.Peer) error {
	if j.CancelRequested && (j.CancelForce || !force) {
		return nil
	}
	j.CancelRequested, j.CancelForce = true, j.CancelForce || force
	err := t.exec(ctx, `UPDATE job SET cancel_requested = 1, cancel_force = ? WHERE id = ?`, j.CancelForce, j.ID)
	if err != nil {
		return err
	}
	text := "cancel requested by " + who(by)
	if force {
		text += ", without waiting for the tool to save its state"
	}
	e := j.event(orchestrator.EventJobCancelRequested, text)
	e.By = by
	return t.event(ctx, e)
}

// cancelQueued cancels the queued job of a step that is being cancelled.
func (t *tx) cancelQueued(ctx context.Context, id orchestrator.JobID, why *orchestrator.Failure) error {
	j, err := jobByID(ctx, t, id)
	if err != nil {
		return err
	}
	return t.moveJob(ctx, &j, orchestrator.JobCancelled, why, nil)
}

// ended says in which final state a run or a job is.
func ended(state string) string {
	if state == string(orchestrator.JobSucceeded) || state == string(orchestrator.JobFailed) {
		return "has " + state
	}
	return "was " + state
}
