package ledger

import (
	"context"
	"strconv"

	"github.com/exocomp/exocomp/orchestrator"
)

// Turns returns the open turns of a workspace; the first holds it.
func (l *Ledger) Turns(ctx context.Context, workspace string) (out []orchestrator.Turn, err error) {
	err = l.read(ctx, "read turns", func(q querier) (err error) {
		out, err = openTurns(ctx, q, workspace)
		return err
	})
	return out, err
}

const turnSelect = `
	SELECT
		seq,
		workspace,
		run_id,
		job_id
	FROM turn`

func openTurns(ctx context.Context, q querier, workspace string) ([]orchestrator.Turn, error) {
	return collect(ctx, q, scanTurn, turnSelect+` WHERE workspace = ? AND closed_at IS NULL ORDER BY seq`, workspace)
}

// holder returns the turn that holds the workspace, and whether one does.
func holder(ctx context.Context, q querier, workspace string) (orchestrator.Turn, bool, error) {
	return one(ctx, q, scanTurn, turnSelect+` WHERE workspace = ? AND closed_at IS NULL ORDER BY seq LIMIT 1`, workspace)
}

func scanTurn(row scanner) (t orchestrator.Turn, err error) {
	err = row.Scan(&t.Seq, &t.Workspace, opt(&t.Run), opt(&t.Job))
	return t, err
}

// openTurn queues a run or a job, whichever is named, for its workspace.
func (t *tx) openTurn(ctx context.Context, workspace string, run orchestrator.RunID, job orchestrator.JobID) (int64, error) {
	res, err := t.ExecContext(ctx, `
		INSERT INTO turn (
			workspace,
			run_id,
			job_id,
			opened_at
		) VALUES (?, ?, ?, ?)`,
		workspace, null(run), null(job), nanos(t.now))
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// turnOfRun returns the open turn of a run.
func turnOfRun(ctx context.Context, q querier, run orchestrator.RunID) (int64, error) {
	var seq int64
	err := q.QueryRowContext(ctx, `SELECT seq FROM turn WHERE run_id = ? AND closed_at IS NULL`, run).Scan(&seq)
	return seq, err
}

// closeTurn gives the workspace back and lets the next in its queue begin.
func (t *tx) closeTurn(ctx context.Context, seq int64, workspace string) error {
	if err := t.exec(ctx, `UPDATE turn SET closed_at = ? WHERE seq = ?`, nanos(t.now), seq); err != nil {
		return err
	}
	return t.advance(ctx, workspace)
}

// advance releases the first step of the run that holds the workspace, unless
// it is released already. A job that holds it needs no release.
func (t *tx) advance(ctx context.Context, workspace string) error {
	turn, held, err := holder(ctx, t, workspace)
	if err != nil || !held || turn.Run == "" {
		return err
	}
	run, err := runByID(ctx, t, turn.Run)
	if err != nil || run.State != orchestrator.RunQueued {
		return err
	}
	switch first := &run.Steps[0]; {
	case first.TakenFrom != "":
		return t.takeSteps(ctx, &run)
	case first.Origin == orchestrator.OriginCaller:
		return t.supply(ctx, &run)
	default:
		return t.releaseStep(ctx, &run, first, orchestrator.TriggerRelease)
	}
}

// heldBy is the conflict with whoever has the workspace.
func heldBy(turn orchestrator.Turn, hint string) error {
	return orchestrator.Errorf(orchestrator.CodeConflict, "workspace %s is held by %s", turn.Workspace, nameOf(turn)).
		WithHint("%s", hint)
}

func nameOf(turn orchestrator.Turn) string {
	if turn.Run != "" {
		return string(turn.Run)
	}
	return string(turn.Job)
}

// refuseParked refuses new work for a workspace whose run waits for a person:
// to queue behind it would be to wait silently, for nobody knows how long.
func refuseParked(ctx context.Context, q querier, workspace string) error {
	id, parked, err := one(ctx, q, scanText[orchestrator.RunID],
		`SELECT id FROM run WHERE workspace = ? AND state = 'awaiting-approval' LIMIT 1`, workspace)
	if err != nil || !parked {
		return err
	}
	return orchestrator.Errorf(orchestrator.CodeConflict, "run %s of workspace %s awaits approval", id, workspace).
		WithHint("decide it, or cancel it: exocomp provision cancel %s", id)
}

// who names a peer for people.
func who(p orchestrator.Peer) string {
	if p.Name != "" {
		return p.Name
	}
	return "uid " + strconv.Itoa(p.UID)
}
