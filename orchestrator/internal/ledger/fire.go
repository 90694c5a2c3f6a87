package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

// RecordFires puts instants of a schedule that have come on record, the oldest
// first, and moves its mark: all up to that are on record then. One that is to
// start waits from then on for [Ledger.NextFire]: whatever happens to the daemon,
// it is not forgotten. An instant that is on record already stays as it is; only
// one that was missed and comes again, since the clock was set back, counts anew.
// Nothing is recorded of a schedule that is paused or gone, or whose mark is not
// the one that was read: it was changed meanwhile, and has other instants.
func (l *Ledger) RecordFires(ctx context.Context, read orchestrator.ScheduleMark, due []orchestrator.DueFire, mark time.Time) error {
	return l.write(ctx, "record fires", func(t *tx) error {
		m, found, err := sameMark(ctx, t, read)
		if err != nil || !found {
			return err
		}
		for _, d := range due {
			if _, err := t.recordFire(ctx, m.Schedule, d, orchestrator.RunSchedule{}); err != nil {
				return err
			}
		}
		return t.setHandled(ctx, m.Schedule.Name, mark)
	})
}

// RunSchedule records a fire that a person asks for now, also of a paused
// schedule. The same key is answered with the fire that it made before.
func (l *Ledger) RunSchedule(ctx context.Context, r orchestrator.RunSchedule) (f orchestrator.Fire, err error) {
	err = l.write(ctx, "run schedule", func(t *tx) error {
		if r.Key != "" {
			old, found, err := one(ctx, t, scanFire, fireSelect+` WHERE fire.key = ?`, r.Key)
			if err != nil {
				return err
			}
			if f = old; found {
				if old.Schedule != r.Schedule {
					return keyUsed(r.Key, "a fire of schedule "+old.Schedule)
				}
				return nil
			}
		}
		s, err := scheduleByName(ctx, t, r.Schedule)
		if err != nil {
			return err
		}
		// two in one nanosecond, or with a clock that stands still
		for {
			_, taken, err := fireAt(ctx, t, s.Name, r.At)
			if err != nil {
				return err
			}
			if !taken {
				break
			}
			r.At = r.At.Add(time.Nanosecond)
		}
		f, err = t.recordFire(ctx, s, orchestrator.DueFire{At: r.At, State: orchestrator.FireWaiting}, r)
		return err
	})
	return f, err
}

// recordFire stores an instant, and how it is to be taken. The rest of r is
// empty unless a person asked.
func (t *tx) recordFire(ctx context.Context, s orchestrator.Schedule, d orchestrator.DueFire, r orchestrator.RunSchedule) (orchestrator.Fire, error) {
	old, found, err := fireAt(ctx, t, s.Name, d.At)
	if err != nil {
		return old, err
	}
	if found && (old.State != orchestrator.FireMissed || d.State == orchestrator.FireMissed) {
		return old, nil
	}
	f := orchestrator.Fire{
		Schedule: s.Name, Workspace: s.Workspace, At: d.At, Manual: r.Schedule != "",
		State: d.State, Reason: d.Reason, By: r.By, RecordedAt: t.now,
	}
	if f.State == orchestrator.FireWaiting {
		if err := t.wouldStart(ctx, s, &f); err != nil {
			return f, err
		}
	}
	if f.State != orchestrator.FireWaiting {
		f.DecidedAt = t.now
	}
	if found {
		if err := t.exec(ctx, `DELETE FROM fire WHERE id = ?`, old.ID); err != nil {
			return f, err
		}
	}
	res, err := t.ExecContext(ctx, `
		INSERT INTO fire (
			key,
			schedule,
			at,
			workspace,
			target,
			concurrency_key,
			manual,
			state,
			reason,
			peer,
			recorded_at,
			decided_at
		) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		null(r.Key), f.Schedule, nanos(f.At), f.Workspace, s.Target(), s.ConcurrencyKey, f.Manual, f.State,
		oneLine(f.Reason), document{f.By}, nanos(f.RecordedAt), nanos(f.DecidedAt))
	if err != nil {
		return f, err
	}
	if f.ID, err = res.LastInsertId(); err != nil {
		return f, err
	}
	return f, t.fireEvent(ctx, f)
}

// wouldStart looks what keeps a fire from starting: a chain of its workspace, a
// fire of its schedule that waits already, or one of its keys that goes on.
func (t *tx) wouldStart(ctx context.Context, s orchestrator.Schedule, f *orchestrator.Fire) error {
	run, active, err := activeRun(ctx, t, s.Workspace)
	if err != nil {
		return err
	}
	if active {
		f.State, f.Reason = orchestrator.FireSkipped, skippedFor(run, s.Workspace)
		return nil
	}
	waits, found, err := one(ctx, t, scanFire, fireSelect+` WHERE fire.schedule = ? AND fire.state = 'waiting'`, s.Name)
	if err != nil {
		return err
	}
	if found {
		f.State, f.Reason = orchestrator.FireCoalesced, "the fire of "+utc(waits.At)+" still waits, and does the same"
		return nil
	}
	before, found, err := one(ctx, t, scanFire, fireSelect+`
		WHERE fire.id IN (`+liveFires+`)
			AND (fire.target IN (?1, ?2) OR fire.concurrency_key IN (?1, nullif(?2, '')))
		ORDER BY fire.id LIMIT 1`, s.Target(), s.ConcurrencyKey)
	switch {
	case err != nil || !found:
		return err
	case before.Job != "":
		f.Reason = fmt.Sprintf("waits for %s of schedule %s", before.Job, before.Schedule)
	default:
		f.Reason = fmt.Sprintf("waits behind the fire of schedule %s", before.Schedule)
	}
	return nil
}

func skippedFor(run orchestrator.RunID, workspace string) string {
	return fmt.Sprintf("%s of workspace %s is not finished", run, workspace)
}

// activeRun returns a run of the workspace that is not final.
func activeRun(ctx context.Context, q querier, workspace string) (orchestrator.RunID, bool, error) {
	return one(ctx, q, scanText[orchestrator.RunID],
		`SELECT run_id FROM turn WHERE workspace = ? AND closed_at IS NULL AND run_id IS NOT NULL ORDER BY seq LIMIT 1`, workspace)
}

// NextFire returns the oldest waiting fire none of whose keys is taken, with its
// schedule, and whether there is one.
func (l *Ledger) NextFire(ctx context.Context) (f orchestrator.Fire, s orchestrator.Schedule, found bool, err error) {
	err = l.read(ctx, "read waiting fires", func(q querier) (err error) {
		f, found, err = one(ctx, q, scanFire, fireSelect+`
			WHERE fire.state = 'waiting' AND NOT EXISTS (
				SELECT 1 FROM fire AS busy WHERE busy.id IN (`+startedFires+`) AND `+sharesKey+`
			)
			ORDER BY fire.id LIMIT 1`)
		if err != nil || !found {
			return err
		}
		s, err = scheduleByName(ctx, q, f.Schedule)
		return err
	})
	return f, s, found, err
}

// startedFires are the fires whose jobs are not finished, liveFires those and the
// ones that wait.
const (
	startedFires = `
		SELECT started.id FROM job AS its CROSS JOIN fire AS started ON started.job_id = its.id
		WHERE its.finished_at IS NULL`
	liveFires = startedFires + ` UNION ALL SELECT id FROM fire WHERE state = 'waiting'`
)

// sharesKey holds of two fires that may not go on at once.
const sharesKey = `(
	busy.target IN (fire.target, fire.concurrency_key)
	OR busy.concurrency_key IN (fire.target, nullif(fire.concurrency_key, ''))
)`

// takenBy returns the job that has one of the keys of the fire that which selects,
// and whether there is one.
func takenBy(ctx context.Context, q querier, which string, arg any) (orchestrator.JobID, bool, error) {
	return one(ctx, q, scanText[orchestrator.JobID], `
		SELECT busy.job_id
		FROM fire JOIN fire AS busy ON busy.id IN (`+startedFires+`) AND `+sharesKey+`
		WHERE `+which+` LIMIT 1`, arg)
}

// refuseBusyKey refuses to run the job of a fire again while a fire of one of its
// keys goes on.
func (t *tx) refuseBusyKey(ctx context.Context, id orchestrator.JobID) error {
	busy, found, err := takenBy(ctx, t, `fire.job_id = ?`, id)
	if err != nil || !found {
		return err
	}
	return orchestrator.Errorf(orchestrator.CodeConflict, "%s, which a schedule with a key in common has started, goes on", busy).
		WithHint("redrive it when that one has ended: exocomp jobs redrive %s", id)
}

// holdFires says of the fires that wait, and waited for nothing until now, which
// job they wait for: one of their keys was taken by a job that was redriven.
func (t *tx) holdFires(ctx context.Context) error {
	free, err := collect(ctx, t, scanFire, fireSelect+` WHERE fire.state = 'waiting' AND fire.reason = ''`)
	if err != nil {
		return err
	}
	for _, f := range free {
		busy, taken, err := takenBy(ctx, t, `fire.id = ?`, f.ID)
		if err != nil {
			return err
		}
		if !taken {
			continue
		}
		f.Reason = "waits for " + string(busy) + ", which was redriven"
		if err := t.exec(ctx, `UPDATE fire SET reason = ? WHERE id = ?`, f.Reason, f.ID); err != nil {
			return err
		}
		if err := t.fireEvent(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// StartFire queues the job of a waiting fire, or records why there is none: a
// chain that has become active, a workspace that takes no work. One that was
// decided meanwhile stays as it is, and one of whose keys is taken meanwhile, by
// a job that was redriven, waits on.
func (l *Ledger) StartFire(ctx context.Context, id int64, n orchestrator.NewJob) error {
	return l.decideFire(ctx, id, func(t *tx, f *orchestrator.Fire) error {
		run, active, err := activeRun(ctx, t, f.Workspace)
		if err != nil {
			return err
		}
		if active {
			f.State, f.Reason = orchestrator.FireSkipped, skippedFor(run, f.Workspace)
			return nil
		}
		_, taken, err := takenBy(ctx, t, `fire.id = ?`, f.ID)
		if err != nil || taken { // what it waits for, holdFires has said
			return err
		}
		j, err := t.submitJob(ctx, n, orchestrator.Job{})
		var domain *orchestrator.Error
		if errors.As(err, &domain) { // it looks before it writes
			f.State, f.Reason = orchestrator.FireRefused, domain.Error()
			return nil
		}
		f.State, f.Reason, f.Job = orchestrator.FireStarted, "", j.ID
		return err
	})
}

// RefuseFire records why a waiting fire starts nothing. One that was decided
// meanwhile stays as it is.
func (l *Ledger) RefuseFire(ctx context.Context, id int64, why error) error {
	return l.decideFire(ctx, id, func(_ *tx, f *orchestrator.Fire) error {
		f.State, f.Reason = orchestrator.FireRefused, orchestrator.FailureOf(why).Err().Error()
		return nil
	})
}

func (l *Ledger) decideFire(ctx context.Context, id int64, decide func(*tx, *orchestrator.Fire) error) error {
	return l.write(ctx, "decide fire", func(t *tx) error {
		f, found, err := one(ctx, t, scanFire, fireSelect+` WHERE fire.id = ?`, id)
		if err != nil || !found || f.State != orchestrator.FireWaiting {
			return err
		}
		if err := decide(t, &f); err != nil || f.State == orchestrator.FireWaiting {
			return err
		}
		return t.settleFire(ctx, f)
	})
}

// settleFire stores what became of a fire that waited.
func (t *tx) settleFire(ctx context.Context, f orchestrator.Fire) error {
	err := t.exec(ctx, `
		UPDATE fire SET
			state = ?,
			reason = ?,
			job_id = ?,
			decided_at = ?
		WHERE id = ?`,
		f.State, oneLine(f.Reason), null(f.Job), nanos(t.now), f.ID)
	if err != nil {
		return err
	}
	return t.fireEvent(ctx, f)
}

// giveUpWaiting skips the fire of a schedule that waits, if one does.
func (t *tx) giveUpWaiting(ctx context.Context, schedule, why string, by orchestrator.Peer) error {
	f, found, err := one(ctx, t, scanFire, fireSelect+` WHERE fire.schedule = ? AND fire.state = 'waiting'`, schedule)
	if err != nil || !found {
		return err
	}
	f.State, f.Reason = orchestrator.FireSkipped, why+" by "+who(by)
	return t.settleFire(ctx, f)
}

var fireEvents = map[orchestrator.FireState]orchestrator.EventKind{
	orchestrator.FireWaiting:   orchestrator.EventFireDue,
	orchestrator.FireStarted:   orchestrator.EventFireStarted,
	orchestrator.FireSkipped:   orchestrator.EventFireSkipped,
	orchestrator.FireCoalesced: orchestrator.EventFireCoalesced,
	orchestrator.FireMissed:    orchestrator.EventFireMissed,
	orchestrator.FireRefused:   orchestrator.EventFireRefused,
}

func (t *tx) fireEvent(ctx context.Context, f orchestrator.Fire) error {
	what := "fire of schedule " + f.Schedule + ", due " + utc(f.At)
	if f.Manual {
		what = "fire of schedule " + f.Schedule + ", asked for by " + who(f.By)
	}
	switch {
	case f.Job != "":
		what += ": started " + string(f.Job)
	case f.Reason != "" && f.State == orchestrator.FireWaiting:
		what += ": " + f.Reason
	case f.Reason != "":
		what += ": " + string(f.State) + ": " + f.Reason
	}
	return t.event(ctx, orchestrator.Event{
		Kind: fireEvents[f.State], Workspace: f.Workspace, Job: f.Job, State: string(f.State), By: f.By, Message: what,
		Warning: f.State == orchestrator.FireMissed || f.State == orchestrator.FireRefused,
	})
}

// utc prints an instant in a text that people of every zone read.
func utc(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05Z") }
