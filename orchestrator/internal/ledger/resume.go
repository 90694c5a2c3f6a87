package ledger

import (
	"cmp"
	"context"
	"fmt"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/inventory"
)

// ResumeRun continues a failed run at its failed step, with r's settings in
// place of the run's own and its crash counts at zero. At a step that follows the
// inventory, see [orchestrator.Run.FollowsInventory], it goes on with the one
// that the workspace has now: correcting what an apply captures is what such a
// failure asks for. Where r says from which step, a new run is made instead,
// which takes over what this one did before it.
//
// It is a [orchestrator.CodeConflict], naming what stands in the way, where the
// run did not fail, where its workspace has a newer run, and while the workspace
// is held; [orchestrator.CodeRefused] where the inventory is another one than
// the step requires, or names a key file that nobody granted, and where no host
// failed that the step could be limited to.
func (l *Ledger) ResumeRun(ctx context.Context, r orchestrator.ResumeRun) (run orchestrator.Run, err error) {
	err = l.write(ctx, "resume run", func(t *tx) error {
		var err error
		if run, err = runByID(ctx, t, r.Run); err != nil {
			return err
		}
		if err := r.Spec.Validate(run.Kind); err != nil {
			return err
		}
		if r.From != "" {
			run, err = t.takeOver(ctx, &run, r)
			return err
		}
		w, err := mayResume(ctx, t, &run)
		if err != nil {
			return err
		}
		if err := free(ctx, t, w); err != nil {
			return err
		}
		if run.FailedStep().Kind == orchestrator.StepTofuApply {
			if err := refuseLost(w, r.Spec.AcceptLost); err != nil {
				return err
			}
			if err := t.acceptLost(ctx, w, orchestrator.Event{Workspace: w.Name, Run: run.ID, By: r.By}); err != nil {
				return err
			}
		}
		return t.resume(ctx, &run, r)
	})
	if err != nil {
		return orchestrator.Run{}, err
	}
	return run, nil
}

// free refuses to go on in a workspace that something else holds.
func free(ctx context.Context, q querier, w orchestrator.Workspace) error {
	turn, held, err := holder(ctx, q, w.Name)
	if err == nil && held {
		err = heldBy(turn, "resume the run when that is done")
	}
	return err
}

// mayResume returns the run's workspace, or why the run cannot go on.
func mayResume(ctx context.Context, q querier, run *orchestrator.Run) (w orchestrator.Workspace, err error) {
	if run.State != orchestrator.RunFailed {
		return w, orchestrator.Errorf(orchestrator.CodeConflict, "run %s is %s: only a failed run is resumed", run.ID, run.State).
			WithHint("start another: %s", run.AnotherCommand())
	}
	return resumable(ctx, q, run)
}

// newestOf returns the workspace of a run that is its newest, or why the run is
// history.
func newestOf(ctx context.Context, q querier, run *orchestrator.Run) (w orchestrator.Workspace, err error) {
	newer, found, err := one(ctx, q, scanText[orchestrator.RunID],
		`SELECT id FROM run WHERE workspace = ? AND id > ? ORDER BY id DESC LIMIT 1`, run.Workspace, run.ID)
	if err != nil {
		return w, err
	}
	if found {
		return w, orchestrator.Errorf(orchestrator.CodeConflict, "workspace %s has a newer run, %s", run.Workspace, newer).
			WithHint("look at that one: exocomp provision status %s", newer)
	}
	if w, err = workspaceByName(ctx, q, run.Workspace); err != nil {
		return w, err
	}
	if w.CreatedAt.After(run.CreatedAt) {
		return w, orchestrator.Errorf(orchestrator.CodeConflict, "workspace %s was removed and added again after run %s", w.Name, run.ID).
			WithHint("start another: %s", run.AnotherCommand())
	}
	return w, nil
}

// resumable returns the workspace of a failed run, or why the run is history.
func resumable(ctx context.Context, q querier, run *orchestrator.Run) (w orchestrator.Workspace, err error) {
	if w, err = newestOf(ctx, q, run); err != nil {
		return w, err
	}
	kind := run.FailedStep().Kind
	if kind == orchestrator.StepTofuApply || run.FollowsInventory(kind) || run.Inventory == "" {
		return w, nil
	}
	inv, found, err := standing(ctx, q, w.Name)
	if err == nil && found && inv.Digest != run.Inventory {
		e := run.InventoryChanged()
		e.Code = orchestrator.CodeConflict
		return w, e
	}
	return w, err
}

func (t *tx) resume(ctx context.Context, run *orchestrator.Run, r orchestrator.ResumeRun) error {
	old := run.Spec
	only, limited, err := onlyFailed(ctx, t, run, r)
	if err != nil {
		return err
	}
	run.Spec = r.Spec
	inventoryMoved, err := t.takeInventory(ctx, run)
	if err != nil {
		return err
	}
	if err := t.exec(ctx, `UPDATE run SET spec = ? WHERE id = ?`, document{r.Spec}, run.ID); err != nil {
		return err
	}
	if _, err := t.openTurn(ctx, run.Workspace, run.ID, ""); err != nil {
		return err
	}
	s := run.FailedStep()
	s.CrashAttempts, s.Only = 0, only
	if err := t.exec(ctx, `UPDATE step SET begun_crashes = 0 WHERE run_id = ? AND seq = ?`, run.ID, s.Seq); err != nil {
		return err
	}
	text := fmt.Sprintf("resumed by %s at step %d %s%s; playbook %s%s%s", who(r.By), s.Seq, s.Kind, limited,
		movedDigest(&old.Playbook, &r.Spec.Playbook), onboardMoved(old, r.Spec), inventoryMoved)
	e := runEvent(run, orchestrator.EventRunResumed, text)
	e.Step, e.By = s.Kind, r.By
	if err := t.event(ctx, e); err != nil {
		return err
	}
	return t.releaseStep(ctx, run, s, orchestrator.TriggerResume)
}

// takeInventory lets a run that goes on at a step which follows the inventory
// require the one that its workspace has now, and says so as the end of a
// sentence. A key file in it must be granted, as the capture of a chain demands.
func (t *tx) takeInventory(ctx context.Context, run *orchestrator.Run) (text string, err error) {
	if !run.FollowsInventory(run.FailedStep().Kind) {
		return "", nil
	}
	inv, found, err := standing(ctx, t, run.Workspace)
	if err != nil || !found || inv.Digest == run.Inventory {
		return "", err
	}
	if err := refuseUngranted(inv, run.Spec.SSHIdentities); err != nil {
		return "", err
	}
	text = fmt.Sprintf("; inventory %s → %s, naming %d host(s)", cmp.Or(run.Inventory, "none"), inv.Digest, len(inv.Hosts))
	run.Inventory = inv.Digest
	return text, t.exec(ctx, `UPDATE run SET inventory = ? WHERE id = ?`, inv.Digest, run.ID)
}

// refuseUngranted refuses an inventory that names a key file which is not among
// those that a person granted.
func refuseUngranted(row orchestrator.Inventory, granted []string) error {
	inv, err := inventory.Parse(row.Workspace, row.Content)
	if err != nil {
		return err
	}
	var m orchestrator.Mistakes
	for _, text := range inventory.Ungranted(inventory.Effective(inv), granted) {
		m.Addf("%s", text)
	}
	if err := m.Err(); err != nil {
		return orchestrator.Errorf(orchestrator.CodeRefused, "%w", err)
	}
	return nil
}

// movedDigest says which snapshot a playbook had and has.
func movedDigest(old, now *orchestrator.PlaybookRef) string {
	if old.Digest == now.Digest {
		return now.Digest + ", unchanged"
	}
	return old.Digest + " → " + now.Digest
}

func onboardMoved(old, now orchestrator.RunSpec) string {
	seeded := &orchestrator.PlaybookRef{Digest: "the seeded one"}
	from, to := old.OnboardPlaybook, now.OnboardPlaybook
	if from == nil && to == nil {
		return ""
	}
	if from == nil {
		from = seeded
	}
	if to == nil {
		to = seeded
	}
	return "; onboarding playbook " + movedDigest(from, to)
}
