package ledger

import (
	"context"
	"fmt"
	"slices"

	"github.com/exocomp/exocomp/orchestrator"
)

// jobTransition is one row of the state machine of a job.
type jobTransition struct{ from, to orchestrator.JobState }

// jobTransitions is that state machine. The schema's rows and the diagram in
// the documentation are generated from it.
var jobTransitions = []jobTransition{
	{orchestrator.JobQueued, orchestrator.JobRunning},
	{orchestrator.JobQueued, orchestrator.JobCancelled},
	{orchestrator.JobRunning, orchestrator.JobSucceeded},
	{orchestrator.JobRunning, orchestrator.JobFailed},
	{orchestrator.JobRunning, orchestrator.JobCancelled},
	{orchestrator.JobRunning, orchestrator.JobInterrupted},
}

// jobRow is a job with what the domain does not show.
type jobRow struct {
	orchestrator.Job
	turn int64
}

// public returns the job without its token.
func (j jobRow) public() orchestrator.Job {
	j.Attempt.Token = orchestrator.Secret{}
	return j.Job
}

func (j jobRow) event(kind orchestrator.EventKind, message string) orchestrator.Event {
	return orchestrator.Event{
		Kind:      kind,
		Workspace: j.Workspace,
		Run:       j.Run,
		Step:      j.StepKind,
		Job:       j.ID,
		State:     string(j.State),
		Message:   message,
	}
}

// applies reports whether the job may change what stands in the workspace.
func (j jobRow) applies() bool {
	return j.StepKind == orchestrator.StepTofuApply ||
		j.Kind == orchestrator.JobWorkspaceApply && !j.Spec.RefreshOnly
}

// SubmitJob queues a standalone job for its workspace. The same key with the
// same content is answered with the job that it made before, and with other
// content is a [orchestrator.CodeConflict].
func (l *Ledger) SubmitJob(ctx context.Context, n orchestrator.NewJob) (orchestrator.Job, error) {
	if n.Kind == orchestrator.JobStep || !slices.Contains(orchestrator.JobKinds, n.Kind) {
		return orchestrator.Job{}, orchestrator.Errorf(orchestrator.CodeInvalid, "there is no standalone job kind %q", n.Kind)
	}
	var j jobRow
	err := l.write(ctx, "submit job", func(t *tx) (err error) {
		var replayed bool
		if j, replayed, err = t.replayJob(ctx, n); err != nil || replayed {
			return err
		}
		j, err = t.submitJob(ctx, n, orchestrator.Job{})
		return err
	})
	return j.public(), err
}

// replayJob looks for the job that n's key made before.
func (t *tx) replayJob(ctx context.Context, n orchestrator.NewJob) (j jobRow, replayed bool, err error) {
	if n.Key == "" {
		return j, false, nil
	}
	id, found, err := one(ctx, t, scanText[orchestrator.JobID], `SELECT id FROM job WHERE key = ?`, n.Key)
	if err != nil || !found {
		return j, false, err
	}
	if j, err = jobByID(ctx, t, id); err != nil {
		return j, false, err
	}
	same, err := sameSpec(j.Spec, n.Spec)
	if err != nil {
		return j, false, err
	}
	if !same || j.Kind != n.Kind || j.Workspace != n.Workspace {
		return j, false, keyUsed(n.Key, "job "+string(id))
	}
	return j, true, nil
}

// RedriveJob runs an interrupted standalone job again, as a new job that
// refers to it; asked again, it answers the same one. A job of another state is a
// [orchestrator.CodeConflict].
func (l *Ledger) RedriveJob(ctx context.Context, id orchestrator.JobID, by orchestrator.Peer) (orchestrator.Job, error) {
	var j jobRow
	err := l.write(ctx, "redrive job", func(t *tx) error {
		old, err := jobByID(ctx, t, id)
		switch {
		case err != nil:
			return err
		case old.Run != "":
			return orchestrator.Errorf(orchestrator.CodeConflict, "job %s is a step of run %s, which looks after it", id, old.Run).
				WithHint("a failed run goes on with: exocomp provision resume %s", old.Run)
		case old.RedrivenBy != "":
			j, err = jobByID(ctx, t, old.RedrivenBy)
			return err
		case old.State != orchestrator.JobInterrupted:
			return orchestrator.Errorf(orchestrator.CodeConflict, "job %s is %s: only an interrupted job is redriven", id, old.State).
				WithHint("look at it: exocomp jobs show %s", id)
		}
		n := orchestrator.NewJob{Kind: old.Kind, Workspace: old.Workspace, Spec: old.Spec, By: by}
		n.Spec.AcceptLost = false // that was about what was lost then
		if err := t.refuseBusyKey(ctx, id); err != nil {
			return err
		}
		if j, err = t.submitJob(ctx, n, old.Job); err != nil {
			return err
		}
		return t.holdFires(ctx)
	})
	return j.public(), err
}

// submitJob queues a standalone job, the next attempt of old where old is one.
func (t *tx) submitJob(ctx context.Context, n orchestrator.NewJob, old orchestrator.Job) (j jobRow, err error) {
	w, err := workspaceByName(ctx, t, n.Workspace)
	if err != nil {
		return j, err
	}
	if n.Kind == orchestrator.JobWorkspaceApply {
		if err := w.RefuseHandedOver(); err != nil {
			return j, err
		}
	}
	if err := refuseParked(ctx, t, w.Name); err != nil {
		return j, err
	}
	j.Job = orchestrator.Job{
		Kind:        n.Kind,
		State:       orchestrator.JobQueued,
		Workspace:   n.Workspace,
		Spec:        n.Spec,
		Attempt:     orchestrator.Attempt{Number: old.Attempt.Number + 1},
		Redrives:    old.ID,
		SubmittedBy: n.By,
		CreatedAt:   t.now,
	}
	if j.applies() {
		if err := refuseLost(w, n.Spec.AcceptLost); err != nil {
			return j, err
		}
	}
	if j.ID, err = t.newJobID(); err != nil {
		return j, err
	}
	if j.turn, err = t.openTurn(ctx, w.Name, "", j.ID); err != nil {
		return j, err
	}
	if err := t.insertJob(ctx, j, n.Key); err != nil {
		return j, err
	}
	text := fmt.Sprintf("%s queued by %s", j.Kind, who(n.By))
	if n.Why != "" {
		text = fmt.Sprintf("%s queued: %s", j.Kind, n.Why)
	}
	if n.Spec.Schedule != "" {
		text = fmt.Sprintf("%s queued by schedule %s", j.Kind, n.Spec.Schedule)
	}
	if old.ID != "" {
		text = fmt.Sprintf("%s queued again by %s, for %s", j.Kind, who(n.By), old.ID)
	}
	e := j.event(orchestrator.EventJobQueued, text)
	e.By = n.By
	if err := t.event(ctx, e); err != nil || !j.applies() {
		return j, err
	}
	return j, t.acceptLost(ctx, w, e)
}

// insertJob stores a queued job and links it with the one that it runs again.
func (t *tx) insertJob(ctx context.Context, j jobRow, key string) error {
	err := t.exec(ctx, `
		INSERT INTO job (
			id,
			key,
			kind,
			state,
			workspace,
			turn,
			run_id,
			step,
			spec,
			attempt,
			phase,
			cancel_requested,
			cancel_force,
			redrives,
			submitted_by,
			created_at
		) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', 0, 0, ?, ?, ?)`,
		j.ID, null(key), j.Kind, j.State, j.Workspace, j.turn, null(j.Run), zeroNull(j.Step), document{j.Spec},
		j.Attempt.Number, null(j.Redrives), document{j.SubmittedBy}, nanos(j.CreatedAt))
	if err != nil || j.Redrives == "" {
		return err
	}
	if err := t.exec(ctx, `UPDATE job SET redriven_by = ? WHERE id = ?`, j.ID, j.Redrives); err != nil {
		return err
	}
	return t.exec(ctx, `UPDATE fire SET job_id = ? WHERE job_id = ?`, j.ID, j.Redrives)
}

// moveJob moves j by its state machine, stores it and appends its event.
func (t *tx) moveJob(ctx context.Context, j *jobRow, to orchestrator.JobState, failure *orchestrator.Failure, report *orchestrator.Report) error {
	if !slices.Contains(jobTransitions, jobTransition{j.State, to}) {
		return orchestrator.Errorf(orchestrator.CodeConflict, "job %s is %s and cannot become %s", j.ID, j.State, to)
	}
	kind, text := orchestrator.EventJobFinished, "job "+string(to)+because(failure)
	j.State, j.Failure, j.Report = to, failure, report
	switch {
	case to == orchestrator.JobRunning:
		kind, text = orchestrator.EventJobStarted, fmt.Sprintf("attempt %d started as %s", j.Attempt.Number, j.Attempt.ID)
		j.StartedAt = t.now
	case to == orchestrator.JobInterrupted:
		kind = orchestrator.EventJobInterrupted
	}
	if to.Final() {
		j.FinishedAt, j.Attempt.Token = t.now, orchestrator.Secret{}
	}
	err := t.exec(ctx, `
		UPDATE job SET
			state = ?,
			attempt_id = ?,
			token = ?,
			failure = ?,
			report = ?,
			started_at = ?,
			finished_at = ?
		WHERE id = ?`,
		j.State, null(j.Attempt.ID), null(j.Attempt.Token.Reveal()), document{j.Failure}, document{j.Report},
		nanos(j.StartedAt), nanos(j.FinishedAt), j.ID)
	if err != nil {
		return err
	}
	return t.event(ctx, j.event(kind, text))
}

// zeroNull is how an optional number is stored: 0 is NULL.
func zeroNull(n int) any {
	if n == 0 {
		return nil
	}
	return n
}
