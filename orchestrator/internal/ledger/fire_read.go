package ledger

import (
	"context"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

// Fires returns the newest fires of a schedule, the newest first, as many as
// limit says.
func (l *Ledger) Fires(ctx context.Context, schedule string, limitTo int) (out []orchestrator.Fire, err error) {
	err = l.read(ctx, "read fires", func(q querier) (err error) {
		out, err = collect(ctx, q, scanFire, fireSelect+` WHERE fire.schedule = ? ORDER BY fire.id DESC`+limit(limitTo), schedule)
		return err
	})
	return out, err
}

// Fire returns a fire.
func (l *Ledger) Fire(ctx context.Context, id int64) (f orchestrator.Fire, err error) {
	err = l.read(ctx, "read fire", func(q querier) error {
		var found bool
		f, found, err = one(ctx, q, scanFire, fireSelect+` WHERE fire.id = ?`, id)
		if err == nil && !found {
			err = orchestrator.Errorf(orchestrator.CodeNotFound, "there is no fire %d", id)
		}
		return err
	})
	return f, err
}

// PruneFires removes what was decided before an instant, except the newest fire
// of each schedule that is there, what waits, and what goes on.
func (l *Ledger) PruneFires(ctx context.Context, before time.Time) error {
	return l.write(ctx, "prune fires", func(t *tx) error {
		return t.exec(ctx, `
			DELETE FROM fire
			WHERE decided_at < ?
				AND (
					EXISTS (SELECT 1 FROM fire AS newer WHERE newer.schedule = fire.schedule AND newer.id > fire.id)
					OR NOT EXISTS (SELECT 1 FROM schedule WHERE schedule.name = fire.schedule)
				)
				AND id NOT IN (`+startedFires+`)`, nanos(before))
	})
}

const fireSelect = `
	SELECT
		fire.id,
		fire.schedule,
		fire.at,
		fire.workspace,
		fire.manual,
		fire.state,
		fire.reason,
		fire.job_id,
		job.state,
		job.failure,
		fire.peer,
		fire.recorded_at,
		fire.decided_at
	FROM fire LEFT JOIN job ON job.id = fire.job_id`

func scanFire(row scanner) (f orchestrator.Fire, err error) {
	var failure orchestrator.Failure
	err = row.Scan(&f.ID, &f.Schedule, &instant{&f.At}, &f.Workspace, &f.Manual, &f.State, &f.Reason, opt(&f.Job),
		opt(&f.JobState), document{&failure}, document{&f.By}, &instant{&f.RecordedAt}, &instant{&f.DecidedAt})
	f.JobFailure = oneLine(failure.Message)
	return f, err
}

func fireAt(ctx context.Context, q querier, schedule string, at time.Time) (orchestrator.Fire, bool, error) {
	return one(ctx, q, scanFire, fireSelect+` WHERE fire.schedule = ? AND fire.at = ?`, schedule, nanos(at))
}
