package ledger

import (
	"context"

	"github.com/exocomp/exocomp/orchestrator"
)

// Admissions returns the admitted hosts of a workspace, by name.
func (l *Ledger) Admissions(ctx context.Context, workspace string) (out []orchestrator.Admission, err error) {
	err = l.read(ctx, "read admissions", func(q querier) (err error) {
		out, err = collect(ctx, q, scanAdmission, `
			SELECT
				workspace,
				host,
				login,
				address,
				job_id,
				at
			FROM admission WHERE workspace = ? ORDER BY host`, workspace)
		return err
	})
	return out, err
}

func scanAdmission(row scanner) (a orchestrator.Admission, err error) {
	err = row.Scan(&a.Workspace, &a.Host, &a.Login, &a.Address, &a.Job, &instant{&a.At})
	return a, err
}

// admit records the hosts that a job admits to its workspace; one that was
// admitted before is admitted anew.
func (t *tx) admit(ctx context.Context, j jobRow, hosts []orchestrator.Admission) error {
	for _, a := range hosts {
		err := t.exec(ctx, `
			INSERT INTO admission (
				workspace,
				host,
				login,
				address,
				job_id,
				at
			) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (workspace, host) DO UPDATE SET
				login = excluded.login,
				address = excluded.address,
				job_id = excluded.job_id,
				at = excluded.at`,
			j.Workspace, a.Host, a.Login, a.Address, j.ID, nanos(t.now))
		if err != nil {
			return err
		}
		e := j.event(orchestrator.EventHostAdmitted, "admitted at "+a.Address+", login as the "+string(a.Login)+" user")
		e.Host = a.Host
		if err := t.event(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// endAdmission ends a host's admission, if it has one.
func (t *tx) endAdmission(ctx context.Context, u orchestrator.PinUser) error {
	return t.exec(ctx, `DELETE FROM admission WHERE workspace = ? AND host = ?`, u.Workspace, u.Host)
}
