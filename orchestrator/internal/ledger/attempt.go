package ledger

import (
	"context"
	"crypto/subtle"
	"fmt"

	"github.com/exocomp/exocomp/orchestrator"
)

// ClaimJob starts the oldest queued job whose turn holds its workspace, and
// returns it with its attempt's name and token; nil where there is none, or
// while the daemon drains. A job that must not apply any more, because lost
// creates came to light while it waited, fails instead.
func (l *Ledger) ClaimJob(ctx context.Context) (*orchestrator.Job, error) {
	var claimed *orchestrator.Job
	err := l.write(ctx, "claim job", func(t *tx) error {
		if draining, err := draining(ctx, t); err != nil || draining {
			return err
		}
		for {
			id, found, err := one(ctx, t, scanText[orchestrator.JobID], claimable)
			if err != nil || !found {
				return err
			}
			j, refused, err := t.startJob(ctx, id)
			if err != nil {
				return err
			}
			if refused == nil {
				claimed = &j.Job
				return nil
			}
			if err := t.finish(ctx, j, orchestrator.Fail(refused, nil)); err != nil {
				return err
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// claimable finds the oldest queued job that holds its workspace.
const claimable = `
	SELECT job.id
	FROM workspace
	JOIN turn ON turn.seq = (
		SELECT min(oldest.seq) FROM turn AS oldest
		WHERE oldest.workspace = workspace.name AND oldest.closed_at IS NULL
	)
	JOIN job ON job.turn = turn.seq AND job.finished_at IS NULL AND job.state = 'queued'
	ORDER BY job.id
	LIMIT 1`

// startJob starts a queued job and its step. Where refused is not nil the job
// runs only to fail with it.
func (t *tx) startJob(ctx context.Context, id orchestrator.JobID) (j jobRow, refused, err error) {
	if j, err = jobByID(ctx, t, id); err != nil {
		return j, nil, err
	}
	w, err := workspaceByName(ctx, t, j.Workspace)
	if err != nil {
		return j, nil, err
	}
	if j.Attempt.ID, j.Attempt.Token, err = t.newAttempt(ctx); err != nil {
		return j, nil, err
	}
	if err := t.moveJob(ctx, &j, orchestrator.JobRunning, nil, nil); err != nil {
		return j, nil, err
	}
	if j.Run != "" {
		run, err := runByID(ctx, t, j.Run)
		if err != nil {
			return j, nil, err
		}
		if err := t.startStep(ctx, &run, &run.Steps[j.Step-1]); err != nil {
			return j, nil, err
		}
	}
	if j.applies() {
		refused = refuseLost(w, false) // who accepted did not mean what was lost since
	}
	return j, refused, nil
}

func (t *tx) startStep(ctx context.Context, run *orchestrator.Run, s *orchestrator.Step) error {
	s.Attempts, s.StartedAt = s.Attempts+1, t.now
	if err := t.moveStep(ctx, run, s, orchestrator.TriggerStart, nil); err != nil {
		return err
	}
	text := fmt.Sprintf("step %d %s started, attempt %d", s.Seq, s.Kind, s.Attempts)
	return t.event(ctx, stepEvent(run, s, orchestrator.EventStepStarted, text))
}

// live returns the running job that token belongs to; any other is a
// [orchestrator.CodeConflict].
func (t *tx) live(ctx context.Context, id orchestrator.JobID, token orchestrator.Secret) (jobRow, error) {
	j, err := jobByID(ctx, t, id)
	if err != nil {
		return j, err
	}
	if j.State != orchestrator.JobRunning {
		return j, orchestrator.Errorf(orchestrator.CodeConflict, "job %s is %s: this attempt is not live", id, j.State)
	}
	if subtle.ConstantTimeCompare([]byte(j.Attempt.Token.Reveal()), []byte(token.Reveal())) != 1 {
		return j, orchestrator.Errorf(orchestrator.CodeConflict, "job %s has another live attempt", id)
	}
	return j, nil
}

// SetPhase makes the intent to start a phase's tool durable, before the tool
// starts.
func (l *Ledger) SetPhase(ctx context.Context, id orchestrator.JobID, token orchestrator.Secret, phase string) error {
	return l.write(ctx, "set phase", func(t *tx) error {
		j, err := t.live(ctx, id, token)
		if err != nil {
			return err
		}
		if err := t.exec(ctx, `UPDATE job SET phase = ? WHERE id = ?`, phase, id); err != nil {
			return err
		}
		return t.event(ctx, j.event(orchestrator.EventJobPhase, phase))
	})
}

// Adopted records that a daemon follows a tool that one before it started.
func (l *Ledger) Adopted(ctx context.Context, id orchestrator.JobID, phase string) error {
	return l.write(ctx, "record adoption", func(t *tx) error {
		j, err := jobByID(ctx, t, id)
		if err != nil {
			return err
		}
		return t.event(ctx, j.event(orchestrator.EventJobAdopted, "adopted the running "+phase))
	})
}

// Progress records a line of a job's progress, about one host or about none.
func (l *Ledger) Progress(ctx context.Context, id orchestrator.JobID, message, host string) error {
	return l.write(ctx, "record progress", func(t *tx) error {
		j, err := jobByID(ctx, t, id)
		if err != nil {
			return err
		}
		e := j.event(orchestrator.EventJobProgress, message)
		e.Host = host
		return t.event(ctx, e)
	})
}

// InterruptJob records that a running job was cut short. A step's goes back to
// ready with a new attempt queued, unless crash is set and its crash attempts
// are used up, of which it has fewer once a phase was begun: then it fails and
// needs a person. A standalone job waits for
// [Ledger.RedriveJob]. Where the end was asked for, it is a cancellation.
//
// It returns the job that was cut short; RedrivenBy names the new attempt.
func (l *Ledger) InterruptJob(ctx context.Context, id orchestrator.JobID, token orchestrator.Secret, reason string, crash bool) (orchestrator.Job, error) {
	var j jobRow
	err := l.writeAlways(ctx, "interrupt job", func(t *tx) (err error) {
		if j, err = t.live(ctx, id, token); err != nil {
			return err
		}
		if j.CancelRequested {
			err = t.finish(ctx, j, orchestrator.Outcome{Failure: cancelled("cancelled; %s", reason)})
		} else {
			err = t.interrupt(ctx, j, reason, crash)
		}
		if err != nil {
			return err
		}
		j, err = jobByID(ctx, t, id)
		return err
	})
	return j.public(), err
}

// countCrash counts what cut j's step short, where it was a crash, and reports
// whether the step has had enough of them.
func (t *tx) countCrash(ctx context.Context, j jobRow, s *orchestrator.Step, crash bool) (spent bool, err error) {
	begun := 0
	if crash {
		s.CrashAttempts++
	}
	if crash && j.Phase != "" {
		begun = 1
	}
	err = t.QueryRowContext(ctx, `
		UPDATE step SET begun_crashes = begun_crashes + ?
		WHERE run_id = ? AND seq = ?
		RETURNING begun_crashes`, begun, j.Run, s.Seq).Scan(&begun)
	return begun >= orchestrator.MaxCrashAttempts || s.CrashAttempts >= orchestrator.MaxCrashes, err
}

func (t *tx) interrupt(ctx context.Context, j jobRow, reason string, crash bool) error {
	why := &orchestrator.Failure{Code: orchestrator.CodeFailed, Message: reason}
	if j.Run == "" {
		why.Hint = fmt.Sprintf("run it again: exocomp jobs redrive %s", j.ID)
	}
	if err := t.moveJob(ctx, &j, orchestrator.JobInterrupted, why, nil); err != nil {
		return err
	}
	if j.Run == "" {
		return t.closeTurn(ctx, j.turn, j.Workspace)
	}
	run, err := runByID(ctx, t, j.Run)
	if err != nil {
		return err
	}
	s := &run.Steps[j.Step-1]
	spent, err := t.countCrash(ctx, j, s, crash)
	if err != nil {
		return err
	}
	if !spent {
		return t.releaseStep(ctx, &run, s, orchestrator.TriggerRearm)
	}
	needs := &orchestrator.Failure{
		Code:    orchestrator.CodeFailed,
		Message: fmt.Sprintf("a crash cut this step short %d times: needs resume (the last time: %s)", s.CrashAttempts, reason),
		Hint:    fmt.Sprintf("exocomp provision resume %s", run.ID),
	}
	if err := t.moveStep(ctx, &run, s, orchestrator.TriggerFail, needs); err != nil {
		return err
	}
	text := fmt.Sprintf("step %d %s failed%s", s.Seq, s.Kind, because(needs))
	if err := t.event(ctx, stepEvent(&run, s, orchestrator.EventStepFinished, text)); err != nil {
		return err
	}
	return t.settleRun(ctx, &run)
}
