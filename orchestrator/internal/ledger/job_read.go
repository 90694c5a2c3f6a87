package ledger

import (
	"context"

	"github.com/exocomp/exocomp/orchestrator"
)

// Job returns a job.
func (l *Ledger) Job(ctx context.Context, id orchestrator.JobID) (orchestrator.Job, error) {
	var j jobRow
	err := l.read(ctx, "read job", func(q querier) (err error) {
		j, err = jobByID(ctx, q, id)
		return err
	})
	return j.public(), err
}

// Jobs returns the jobs that f selects, newest first.
func (l *Ledger) Jobs(ctx context.Context, f orchestrator.JobFilter) ([]orchestrator.Job, error) {
	var w where
	if f.Run != "" {
		w.add(`job.run_id = ?`, f.Run)
	}
	if f.Workspace != "" {
		w.add(`job.workspace = ?`, f.Workspace)
	}
	if f.State != "" {
		w.add(`job.state = ?`, f.State)
	}
	rows, err := l.jobs(ctx, w.String()+` ORDER BY job.id DESC`+limit(f.Limit), w.args...)
	out := make([]orchestrator.Job, len(rows))
	for i, j := range rows {
		out[i] = j.public()
	}
	return out, err
}

// RunningJobs returns the running jobs, oldest first, with their tokens: what a
// starting daemon has to adopt, record or re-arm.
func (l *Ledger) RunningJobs(ctx context.Context) ([]orchestrator.Job, error) {
	rows, err := l.jobs(ctx, ` WHERE job.state = 'running' ORDER BY job.id`)
	out := make([]orchestrator.Job, len(rows))
	for i, j := range rows {
		out[i] = j.Job
	}
	return out, err
}

// CountJobs returns how many jobs run and how many are queued.
func (l *Ledger) CountJobs(ctx context.Context) (running, queued int, err error) {
	err = l.read(ctx, "count jobs", func(q querier) error {
		return q.QueryRowContext(ctx, `
			SELECT
				(SELECT count(*) FROM job WHERE state = 'running'),
				(SELECT count(*) FROM job WHERE state = 'queued')`).Scan(&running, &queued)
	})
	return running, queued, err
}

func (l *Ledger) jobs(ctx context.Context, clauses string, args ...any) (rows []jobRow, err error) {
	err = l.read(ctx, "read jobs", func(q querier) (err error) {
		rows, err = collect(ctx, q, scanJob, jobSelect+clauses, args...)
		return err
	})
	return rows, err
}

const jobSelect = `
	SELECT
		job.id,
		job.kind,
		job.state,
		job.workspace,
		job.turn,
		job.run_id,
		coalesce(job.step, 0),
		step.kind,
		job.spec,
		job.attempt,
		job.attempt_id,
		job.token,
		job.phase,
		job.cancel_requested,
		job.cancel_force,
		job.failure,
		job.report,
		job.redrives,
		job.redriven_by,
		job.submitted_by,
		job.created_at,
		job.started_at,
		job.finished_at
	FROM job LEFT JOIN step ON step.run_id = job.run_id AND step.seq = job.step`

func scanJob(row scanner) (j jobRow, err error) {
	var token string
	err = row.Scan(&j.ID, &j.Kind, &j.State, &j.Workspace, &j.turn, opt(&j.Run), &j.Step, opt(&j.StepKind),
		document{&j.Spec}, &j.Attempt.Number, opt(&j.Attempt.ID), opt(&token), &j.Phase, &j.CancelRequested,
		&j.CancelForce, document{&j.Failure}, document{&j.Report}, opt(&j.Redrives), opt(&j.RedrivenBy),
		document{&j.SubmittedBy}, &instant{&j.CreatedAt}, &instant{&j.StartedAt}, &instant{&j.FinishedAt})
	j.Attempt.Token = orchestrator.NewSecret(token)
	return j, err
}

func jobByID(ctx context.Context, q querier, id orchestrator.JobID) (jobRow, error) {
	j, found, err := one(ctx, q, scanJob, jobSelect+` WHERE job.id = ?`, id)
	if err == nil && !found {
		err = orchestrator.Errorf(orchestrator.CodeNotFound, "there is no job %s", id).
			WithHint("list them: exocomp jobs list")
	}
	return j, err
}
