package ledger

import (
	"context"
	"fmt"

	"github.com/exocomp/exocomp/orchestrator"
)

// Handed is an inventory that a resource hands over, and where its hosts are.
type Handed struct {
	Inventory orchestrator.Inventory
	Places    []orchestrator.Place
}

// handedFrom says where a handed inventory comes from, in place of outputs.
const handedFrom = "handed over by the apply of an exocomp_provision"

func (t *tx) insertHanded(ctx context.Context, run orchestrator.RunID, h Handed) error {
	return t.exec(ctx, `
		INSERT INTO handed (
			run_id,
			content,
			digest,
			path,
			hosts,
			places
		) VALUES (?, ?, ?, ?, ?, ?)`,
		run, h.Inventory.Content, h.Inventory.Digest, h.Inventory.Path, texts(h.Inventory.Hosts), document{h.Places})
}

// dropHanded forgets what waited for the turn of a run.
func (t *tx) dropHanded(ctx context.Context, run orchestrator.RunID) error {
	return t.exec(ctx, `DELETE FROM handed WHERE run_id = ?`, run)
}

// handedOf returns what waits for the turn of a run.
func handedOf(ctx context.Context, q querier, run orchestrator.RunID) (Handed, bool, error) {
	return one(ctx, q, scanHanded, `
		SELECT
			content,
			digest,
			path,
			hosts,
			places
		FROM handed WHERE run_id = ?`, run)
}

func scanHanded(row scanner) (h Handed, err error) {
	err = row.Scan(&h.Inventory.Content, &h.Inventory.Digest, &h.Inventory.Path, document{&h.Inventory.Hosts}, document{&h.Places})
	return h, err
}

// supply makes step 1 of a run whose turn has come what its caller did, and
// releases step 2.
func (t *tx) supply(ctx context.Context, run *orchestrator.Run) error {
	h, found, err := handedOf(ctx, t, run.ID)
	if err != nil {
		return err
	}
	if !found {
		return orchestrator.Errorf(orchestrator.CodeInternal, "nothing was handed over for run %s", run.ID)
	}
	if err := t.dropHanded(ctx, run.ID); err != nil {
		return err
	}
	s := &run.Steps[0]
	if err := t.recordHanded(ctx, run, h); err != nil {
		return err
	}
	s.Report = &orchestrator.Report{
		Summary: fmt.Sprintf("%s, naming %d host(s)", handedFrom, len(h.Inventory.Hosts)),
		Digest:  h.Inventory.Digest,
	}
	if err := t.moveStep(ctx, run, s, orchestrator.TriggerSupply, nil); err != nil {
		return err
	}
	text := fmt.Sprintf("step %d %s succeeded: %s", s.Seq, s.Kind, handedFrom)
	if err := t.event(ctx, stepEvent(run, s, orchestrator.EventStepFinished, text)); err != nil {
		return err
	}
	return t.releaseStep(ctx, run, &run.Steps[1], orchestrator.TriggerRelease)
}

// recordHanded makes h the standing inventory that the run requires, and lets go
// of the pins of hosts that are not in it.
func (t *tx) recordHanded(ctx context.Context, run *orchestrator.Run, h Handed) error {
	about := orchestrator.Event{Workspace: run.Workspace, Run: run.ID, Step: orchestrator.StepTofuApply}
	if err := t.captureInventory(ctx, about, h.Inventory); err != nil {
		return err
	}
	run.Inventory = h.Inventory.Digest
	return t.retireLeaving(ctx, about, h.Places)
}

// retireLeaving lets go of the pins of hosts that are not among the places.
func (t *tx) retireLeaving(ctx context.Context, about orchestrator.Event, places []orchestrator.Place) error {
	rows, err := selectPins(ctx, t, ` WHERE retired_at IS NULL AND id IN (SELECT pin FROM pin_user WHERE workspace = ?)`, about.Workspace)
	if err != nil {
		return err
	}
	pins := make([]orchestrator.Pin, 0, len(rows))
	for _, r := range rows {
		pins = append(pins, r.Pin)
	}
	leaving := orchestrator.LeavingPins(pins, about.Workspace, places)
	if len(leaving) == 0 {
		return nil
	}
	return t.leavePins(ctx, about, leaving, "its host left "+orchestrator.InventoryName(about.Workspace))
}
