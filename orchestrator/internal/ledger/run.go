package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

// SubmitRun records a run and queues it for its workspace; where it holds the
// workspace at once, its first step is released. It reports whether the run is
// new: the same key with the same content is answered with the run that it made
// before, and with other content is a [orchestrator.CodeConflict].
func (l *Ledger) SubmitRun(ctx context.Context, n orchestrator.NewRun) (run orchestrator.Run, created bool, err error) {
	if n.Kind.Steps() == nil {
		return run, false, orchestrator.Errorf(orchestrator.CodeInvalid, "there is no run kind %q", n.Kind)
	}
	if err := n.Spec.Validate(n.Kind); err != nil {
		return run, false, err
	}
	err = l.write(ctx, "submit run", func(t *tx) error {
		var err error
		if run, created, err = t.replay(ctx, n); err != nil || !created {
			return err
		}
		w, err := workspaceByName(ctx, t, n.Workspace)
		if err != nil {
			return err
		}
		if err := w.RefuseHandedOver(); err != nil {
			return err
		}
		if err := refuseParked(ctx, t, w.Name); err != nil {
			return err
		}
		run, err = t.submitRun(ctx, w, n, given{})
		return err
	})
	if err != nil {
		return orchestrator.Run{}, false, err
	}
	return run, created, nil
}

// given is what a run need not do itself. The zero value is nothing.
type given struct {
	handed    *Handed             // what its step 1 will have made when its turn comes
	taken     []orchestrator.Step // of another run: its own first steps
	inventory string              // digest that those are for
}

// submitRun records a run of w and queues it.
func (t *tx) submitRun(ctx context.Context, w orchestrator.Workspace, n orchestrator.NewRun, g given) (run orchestrator.Run, err error) {
	applies := len(g.taken) == 0
	if applies {
		if err := refuseLost(w, n.Spec.AcceptLost); err != nil {
			return run, err
		}
	}
	if run, err = t.insertRun(ctx, n, g); err != nil {
		return run, err
	}
	if g.handed != nil {
		if err := t.insertHanded(ctx, run.ID, *g.handed); err != nil {
			return run, err
		}
	}
	if applies {
		if err := t.acceptLost(ctx, w, orchestrator.Event{Workspace: w.Name, Run: run.ID, By: n.By}); err != nil {
			return run, err
		}
	}
	if _, err := t.openTurn(ctx, w.Name, run.ID, ""); err != nil {
		return run, err
	}
	if err := t.advance(ctx, w.Name); err != nil {
		return run, err
	}
	return runByID(ctx, t, run.ID)
}

// replay looks for the run that n's key made before; created is true where
// there is none.
func (t *tx) replay(ctx context.Context, n orchestrator.NewRun) (run orchestrator.Run, created bool, err error) {
	if n.Key == "" {
		return run, true, nil
	}
	id, found, err := one(ctx, t, scanText[orchestrator.RunID], `SELECT id FROM run WHERE key = ?`, n.Key)
	if err != nil || !found {
		return run, true, err
	}
	if run, err = runByID(ctx, t, id); err != nil {
		return run, false, err
	}
	same, err := sameSpec(run.Spec, n.Spec)
	if err != nil {
		return run, false, err
	}
	if !same || run.Kind != n.Kind || run.Workspace != n.Workspace {
		return run, false, keyUsed(n.Key, "run "+string(id))
	}
	return run, false, nil
}

// keyUsed refuses an idempotency key that stands for something else.
func keyUsed(key, what string) error {
	return orchestrator.Errorf(orchestrator.CodeConflict, "key %q was used for %s, which asked for something else", key, what).
		WithHint("submit with a fresh key")
}

// sameSpec compares what two submits ask for.
func sameSpec[T any](a, b T) (bool, error) {
	x, err := json.Marshal(a)
	if err != nil {
		return false, err
	}
	y, err := json.Marshal(b)
	return string(x) == string(y), err
}

func (t *tx) insertRun(ctx context.Context, n orchestrator.NewRun, g given) (orchestrator.Run, error) {
	id, err := t.newRunID()
	if err != nil {
		return orchestrator.Run{}, err
	}
	err = t.exec(ctx, `
		INSERT INTO run (
			id,
			key,
			kind,
			workspace,
			state,
			spec,
			inventory,
			resource,
			submitted_by,
			created_at
		) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		id, null(n.Key), n.Kind, n.Workspace, orchestrator.RunQueued, document{n.Spec}, null(g.inventory), n.Resource, document{n.By}, nanos(t.now))
	if err != nil {
		return orchestrator.Run{}, err
	}
	for i, kind := range n.Kind.Steps() {
		s := orchestrator.Step{Seq: i + 1, Kind: kind, State: orchestrator.StepBlocked, Origin: orchestrator.OriginRun}
		if i == 0 && n.Origin != "" {
			s.Origin = n.Origin
		}
		if i < len(g.taken) {
			s.Origin, s.TakenFrom = g.taken[i].Origin, g.taken[i].TakenFrom
		}
		if err := t.insertStep(ctx, id, s); err != nil {
			return orchestrator.Run{}, err
		}
	}
	run := orchestrator.Run{ID: id, Workspace: n.Workspace, State: orchestrator.RunQueued}
	e := runEvent(&run, orchestrator.EventRunSubmitted, fmt.Sprintf("%s run submitted by %s", n.Kind, who(n.By)))
	e.By = n.By
	return run, t.event(ctx, e)
}

// Run returns a run with its steps.
func (l *Ledger) Run(ctx context.Context, id orchestrator.RunID) (run orchestrator.Run, err error) {
	err = l.read(ctx, "read run", func(q querier) (err error) {
		run, err = runByID(ctx, q, id)
		return err
	})
	return run, err
}

// NewestRun returns the newest run of a workspace.
func (l *Ledger) NewestRun(ctx context.Context, workspace string) (orchestrator.Run, error) {
	runs, err := l.Runs(ctx, orchestrator.RunFilter{Workspace: workspace, Limit: 1})
	if err != nil {
		return orchestrator.Run{}, err
	}
	if len(runs) == 0 {
		return orchestrator.Run{}, orchestrator.Errorf(orchestrator.CodeNotFound, "workspace %q has no run", workspace).
			WithHint("start one: exocomp provision run %[1]s PLAYBOOK, or exocomp handoff run %[1]s PLAYBOOK; list the workspaces: exocomp workspace list", workspace)
	}
	return runs[0], nil
}

// Runs returns the runs that f selects, newest first.
func (l *Ledger) Runs(ctx context.Context, f orchestrator.RunFilter) (runs []orchestrator.Run, err error) {
	var w where
	if f.Workspace != "" {
		w.add(`workspace = ?`, f.Workspace)
	}
	if f.State != "" {
		w.add(`state = ?`, f.State)
	}
	if f.Before != "" {
		w.add(`id < ?`, f.Before)
	}
	err = l.read(ctx, "read runs", func(q querier) (err error) {
		runs, err = selectRuns(ctx, q, w.String()+` ORDER BY id DESC`+limit(f.Limit), w.args...)
		return err
	})
	return runs, err
}

func runByID(ctx context.Context, q querier, id orchestrator.RunID) (orchestrator.Run, error) {
	runs, err := selectRuns(ctx, q, ` WHERE id = ?`, id)
	if err != nil {
		return orchestrator.Run{}, err
	}
	if len(runs) == 0 {
		return orchestrator.Run{}, orchestrator.Errorf(orchestrator.CodeNotFound, "there is no run %s", id).
			WithHint("list them: exocomp provision list")
	}
	return runs[0], nil
}

func selectRuns(ctx context.Context, q querier, clauses string, args ...any) ([]orchestrator.Run, error) {
	runs, err := collect(ctx, q, scanRun, `
		SELECT
			id,
			kind,
			workspace,
			state,
			spec,
			inventory,
			resource,
			submitted_by,
			created_at,
			finished_at
		FROM run`+clauses, args...)
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	ids := make([]orchestrator.RunID, len(runs))
	for i, r := range runs {
		ids[i] = r.ID
	}
	steps, err := stepsOf(ctx, q, ids)
	for i := range runs {
		runs[i].Steps = steps[runs[i].ID]
	}
	return runs, err
}

func scanRun(row scanner) (r orchestrator.Run, err error) {
	err = row.Scan(&r.ID, &r.Kind, &r.Workspace, &r.State, document{&r.Spec}, opt(&r.Inventory),
		&r.Resource, document{&r.SubmittedBy}, &instant{&r.CreatedAt}, &instant{&r.FinishedAt})
	return r, err
}

// settleRun brings the run's state in line with its steps'. A run that becomes
// final gives its workspace back.
func (t *tx) settleRun(ctx context.Context, run *orchestrator.Run) error {
	states := make([]orchestrator.StepState, len(run.Steps))
	for i, s := range run.Steps {
		states[i] = s.State
	}
	state := orchestrator.RunStateOf(states)
	if state == run.State {
		return nil
	}
	run.State, run.FinishedAt = state, time.Time{}
	if state.Final() {
		run.FinishedAt = t.now
	}
	err := t.exec(ctx, `UPDATE run SET state = ?, finished_at = ? WHERE id = ?`, state, nanos(run.FinishedAt), run.ID)
	if err != nil || !state.Final() {
		return err
	}
	text := "run " + string(state)
	if s := run.FailedStep(); s != nil {
		text += fmt.Sprintf(" at step %d %s%s", s.Seq, s.Kind, because(s.Failure))
	}
	if err := t.event(ctx, runEvent(run, orchestrator.EventRunFinished, text)); err != nil {
		return err
	}
	if run.Resource && state == orchestrator.RunSucceeded {
		if err := t.proveProvision(ctx, run); err != nil {
			return err
		}
	}
	if err := t.dropHanded(ctx, run.ID); err != nil {
		return err
	}
	turn, err := turnOfRun(ctx, t, run.ID)
	if err != nil {
		return fmt.Errorf("find turn of %s: %w", run.ID, err)
	}
	return t.closeTurn(ctx, turn, run.Workspace)
}

func runEvent(run *orchestrator.Run, kind orchestrator.EventKind, message string) orchestrator.Event {
	return orchestrator.Event{
		Kind:      kind,
		Workspace: run.Workspace,
		Run:       run.ID,
		State:     string(run.State),
		Message:   message,
	}
}
