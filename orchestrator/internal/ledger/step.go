package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

// stepRow is a step with the run that it belongs to.
type stepRow struct {
	run  orchestrator.RunID
	step orchestrator.Step
}

// stepsOf returns the steps of the runs, by run and in order.
func stepsOf(ctx context.Context, q querier, runs []orchestrator.RunID) (map[orchestrator.RunID][]orchestrator.Step, error) {
	rows, err := collect(ctx, q, scanStep, `
		SELECT
			run_id,
			seq,
			kind,
			state,
			origin,
			taken_from,
			only_hosts,
			attempts,
			crash_attempts,
			job_id,
			failure,
			report,
			started_at,
			finished_at
		FROM step WHERE run_id IN (SELECT value FROM json_each(?)) ORDER BY run_id, seq`, document{runs})
	out := make(map[orchestrator.RunID][]orchestrator.Step, len(runs))
	for _, r := range rows {
		out[r.run] = append(out[r.run], r.step)
	}
	return out, err
}

func scanStep(row scanner) (r stepRow, err error) {
	s := &r.step
	err = row.Scan(&r.run, &s.Seq, &s.Kind, &s.State, &s.Origin, opt(&s.TakenFrom), document{&s.Only}, &s.Attempts, &s.CrashAttempts, opt(&s.Job),
		document{&s.Failure}, document{&s.Report}, &instant{&s.StartedAt}, &instant{&s.FinishedAt})
	return r, err
}

func (t *tx) insertStep(ctx context.Context, run orchestrator.RunID, s orchestrator.Step) error {
	return t.exec(ctx, `
		INSERT INTO step (
			run_id,
			seq,
			kind,
			state,
			origin,
			taken_from,
			attempts,
			crash_attempts
		) VALUES (?, ?, ?, ?, ?, ?, 0, 0)`,
		run, s.Seq, s.Kind, s.State, s.Origin, null(s.TakenFrom))
}

// moveStep moves s by the state machine and stores it as it stands. A final
// state gets its finish time, and a failed or cancelled one its failure.
func (t *tx) moveStep(ctx context.Context, run *orchestrator.Run, s *orchestrator.Step, trigger orchestrator.StepTrigger, failure *orchestrator.Failure) error {
	next, err := s.State.Next(trigger)
	if err != nil {
		return fmt.Errorf("%s step %d: %w", run.ID, s.Seq, err)
	}
	s.State, s.Failure, s.FinishedAt = next, failure, time.Time{}
	if next.Final() {
		s.FinishedAt = t.now
	}
	return t.exec(ctx, `
		UPDATE step SET
			state = ?,
			only_hosts = ?,
			attempts = ?,
			crash_attempts = ?,
			job_id = ?,
			failure = ?,
			report = ?,
			started_at = ?,
			finished_at = ?
		WHERE run_id = ? AND seq = ?`,
		s.State, document{s.Only}, s.Attempts, s.CrashAttempts, null(s.Job), document{s.Failure}, document{s.Report},
		nanos(s.StartedAt), nanos(s.FinishedAt), run.ID, s.Seq)
}

// releaseStep makes s ready and queues its next attempt.
func (t *tx) releaseStep(ctx context.Context, run *orchestrator.Run, s *orchestrator.Step, trigger orchestrator.StepTrigger) error {
	turn, err := turnOfRun(ctx, t, run.ID)
	if err != nil {
		return fmt.Errorf("find turn of %s: %w", run.ID, err)
	}
	id, err := t.newJobID()
	if err != nil {
		return err
	}
	j := jobRow{turn: turn, Job: orchestrator.Job{
		ID:          id,
		Kind:        orchestrator.JobStep,
		State:       orchestrator.JobQueued,
		Workspace:   run.Workspace,
		Run:         run.ID,
		Step:        s.Seq,
		StepKind:    s.Kind,
		Attempt:     orchestrator.Attempt{Number: s.Attempts + 1},
		SubmittedBy: run.SubmittedBy,
		CreatedAt:   t.now,
	}}
	kind := orchestrator.EventStepReleased
	if trigger == orchestrator.TriggerRearm {
		kind, j.Redrives = orchestrator.EventStepRearmed, s.Job
	}
	if err := t.insertJob(ctx, j, ""); err != nil {
		return err
	}
	s.Job, s.Report = id, nil // what an attempt before this one did stands with its job
	if err := t.moveStep(ctx, run, s, trigger, nil); err != nil {
		return err
	}
	if err := t.event(ctx, stepEvent(run, s, kind, fmt.Sprintf("step %d %s is ready", s.Seq, s.Kind))); err != nil {
		return err
	}
	queued := j.event(orchestrator.EventJobQueued, fmt.Sprintf("attempt %d is queued", j.Attempt.Number))
	if err := t.event(ctx, queued); err != nil {
		return err
	}
	return t.settleRun(ctx, run)
}

// endStep ends the running step of a finished attempt and lets the chain go on,
// or stop: blocked steps stay blocked behind a failure and are cancelled behind
// a cancellation, or where one was asked for while this step succeeded.
func (t *tx) endStep(ctx context.Context, j jobRow, trigger orchestrator.StepTrigger, failure *orchestrator.Failure, report *orchestrator.Report) error {
	run, err := runByID(ctx, t, j.Run)
	if err != nil {
		return err
	}
	s := &run.Steps[j.Step-1]
	s.Report = report
	if err := t.moveStep(ctx, &run, s, trigger, failure); err != nil {
		return err
	}
	text := fmt.Sprintf("step %d %s %s%s", s.Seq, s.Kind, s.State, because(failure))
	if err := t.event(ctx, stepEvent(&run, s, orchestrator.EventStepFinished, text)); err != nil {
		return err
	}
	last := s.Seq == len(run.Steps)
	switch {
	case s.State == orchestrator.StepCancelled:
		return t.cancelSteps(ctx, &run, failure)
	case s.State == orchestrator.StepSucceeded && !last && j.CancelRequested:
		return t.cancelSteps(ctx, &run, cancelled("the run was cancelled while step %d %s succeeded", s.Seq, s.Kind))
	case s.State == orchestrator.StepSucceeded && !last:
		return t.releaseStep(ctx, &run, &run.Steps[s.Seq], orchestrator.TriggerRelease)
	default:
		return t.settleRun(ctx, &run)
	}
}

// cancelSteps cancels every step that is not final, none of which may run.
func (t *tx) cancelSteps(ctx context.Context, run *orchestrator.Run, why *orchestrator.Failure) error {
	for i := range run.Steps {
		s := &run.Steps[i]
		if s.State.Final() {
			continue
		}
		if s.State == orchestrator.StepReady {
			if err := t.cancelQueued(ctx, s.Job, why); err != nil {
				return err
			}
		}
		if err := t.moveStep(ctx, run, s, orchestrator.TriggerCancel, why); err != nil {
			return err
		}
		text := fmt.Sprintf("step %d %s cancelled%s", s.Seq, s.Kind, because(why))
		if err := t.event(ctx, stepEvent(run, s, orchestrator.EventStepFinished, text)); err != nil {
			return err
		}
	}
	return t.settleRun(ctx, run)
}

func stepEvent(run *orchestrator.Run, s *orchestrator.Step, kind orchestrator.EventKind, message string) orchestrator.Event {
	return orchestrator.Event{
		Kind:      kind,
		Workspace: run.Workspace,
		Run:       run.ID,
		Step:      s.Kind,
		Job:       s.Job,
		State:     string(s.State),
		Message:   message,
	}
}

// because returns a failure as the end of a sentence.
func because(f *orchestrator.Failure) string {
	if f == nil {
		return ""
	}
	return ": " + f.Message
}

func cancelled(format string, args ...any) *orchestrator.Failure {
	return &orchestrator.Failure{Code: orchestrator.CodeCancelled, Message: fmt.Sprintf(format, args...)}
}
