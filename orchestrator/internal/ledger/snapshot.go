package ledger

import (
	"context"
	"time"
)

// SnapshotsInUse returns the digests of the playbook snapshots that something
// may still ask for: those of runs that were submitted or ended since, of
// unfinished runs, and of each workspace's newest and newest succeeded run, from
// which `provision resume` and `host onboard` go on; and those of standalone
// jobs that were submitted or ended since, or may yet run or be redriven.
func (l *Ledger) SnapshotsInUse(ctx context.Context, since time.Time) (digests []string, err error) {
	err = l.read(ctx, "read snapshots in use", func(q querier) (err error) {
		digests, err = collect(ctx, q, scanText[string], `
			WITH kept AS (
				SELECT spec FROM run
				WHERE created_at >= ?1
					OR finished_at >= ?1
					OR finished_at IS NULL
					OR id IN (SELECT max(id) FROM run GROUP BY workspace)
					OR id IN (SELECT max(id) FROM run WHERE state = 'succeeded' GROUP BY workspace)
			), standalone AS (
				SELECT spec FROM job
				WHERE run_id IS NULL
					AND (created_at >= ?1 OR finished_at >= ?1 OR state IN ('queued', 'running', 'interrupted'))
			)
			SELECT spec ->> '$.playbook.digest' FROM kept
			UNION
			SELECT spec ->> '$.onboard_playbook.digest' FROM kept
			WHERE spec ->> '$.onboard_playbook.digest' IS NOT NULL
			UNION
			SELECT spec ->> '$.play.playbook.digest' FROM standalone
			WHERE spec ->> '$.play.playbook.digest' IS NOT NULL`, nanos(since))
		return err
	})
	return digests, err
}
