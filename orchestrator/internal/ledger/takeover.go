package ledger

import (
	"context"
	"fmt"

	"github.com/exocomp/exocomp/orchestrator"
)

// takeOver records a run that takes over what another did before a step, which
// stays as it is, and does the rest itself with r's settings. Of a resource it
// takes the place of the other one.
func (t *tx) takeOver(ctx context.Context, source *orchestrator.Run, r orchestrator.ResumeRun) (run orchestrator.Run, err error) {
	first, err := mayTakeOver(source, r)
	if err != nil {
		return run, err
	}
	w, err := newestOf(ctx, t, source)
	if err != nil {
		return run, err
	}
	if err := free(ctx, t, w); err != nil {
		return run, err
	}
	g, err := takenBefore(ctx, t, source, first)
	if err != nil {
		return run, err
	}
	if len(g.taken) == 0 {
		if err := w.RefuseHandedOver(); err != nil {
			return run, err
		}
	}
	n := orchestrator.NewRun{Kind: source.Kind, Workspace: w.Name, Spec: r.Spec, By: r.By, Resource: source.Resource}
	if run, err = t.submitRun(ctx, w, n, g); err != nil || !run.Resource {
		return run, err
	}
	return run, t.exec(ctx, `UPDATE provision SET run_id = ? WHERE workspace = ? AND run_id = ?`, run.ID, w.Name, source.ID)
}

// mayTakeOver returns the index of the first step that is not taken over, or why
// the run has nothing to be taken over from.
func mayTakeOver(source *orchestrator.Run, r orchestrator.ResumeRun) (first int, err error) {
	from := source.Step(r.From)
	switch {
	case from == nil:
		return 0, source.Kind.NoStep(r.From)
	case r.FailedOnly:
		return 0, orchestrator.Errorf(orchestrator.CodeInvalid, "--from begins a run that deals with all hosts: leave --failed-only out")
	case !source.State.Final():
		return 0, orchestrator.Errorf(orchestrator.CodeConflict, "run %s is %s: only of a run that has ended can another take over", source.ID, source.State).
			WithHint("wait for it: exocomp provision logs -f %s", source.ID)
	}
	for _, s := range source.Steps[:from.Seq-1] {
		if s.State == orchestrator.StepSucceeded {
			continue
		}
		return 0, orchestrator.Errorf(orchestrator.CodeConflict, "step %d %s of run %s is %s: nothing is there to be taken over", s.Seq, s.Kind, source.ID, s.State).
			WithHint("begin at that step: %s", orchestrator.ShellCommand("exocomp", "provision", "resume", string(source.ID), "--from", string(s.Kind)))
	}
	return from.Seq - 1, nil
}

// takenBefore collects what a run did before its step first, each step under the
// run that really did it. What it did was for the inventory that it captured:
// another one is refused.
func takenBefore(ctx context.Context, q querier, source *orchestrator.Run, first int) (g given, err error) {
	if first == 0 {
		return g, nil
	}
	inv, _, err := standing(ctx, q, source.Workspace)
	if err != nil {
		return g, err
	}
	if inv.Digest != source.Inventory {
		return g, source.InventoryChanged()
	}
	g.inventory = source.Inventory
	for _, s := range source.Steps[:first] {
		if s.TakenFrom == "" {
			s.TakenFrom = source.ID
		}
		g.taken = append(g.taken, s)
	}
	return g, nil
}

// takeSteps makes the first steps of a run whose turn has come what other runs
// did, and releases the one behind them.
func (t *tx) takeSteps(ctx context.Context, run *orchestrator.Run) error {
	for i := range run.Steps {
		s := &run.Steps[i]
		if s.TakenFrom == "" {
			return t.releaseStep(ctx, run, s, orchestrator.TriggerRelease)
		}
		source, err := runByID(ctx, t, s.TakenFrom)
		if err != nil {
			return err
		}
		s.Report = source.Steps[i].Report
		if err := t.moveStep(ctx, run, s, orchestrator.TriggerTake, nil); err != nil {
			return err
		}
		text := fmt.Sprintf("step %d %s taken over from %s", s.Seq, s.Kind, s.TakenFrom)
		if err := t.event(ctx, stepEvent(run, s, orchestrator.EventStepFinished, text)); err != nil {
			return err
		}
	}
	return t.settleRun(ctx, run)
}
