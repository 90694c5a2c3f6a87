package ledger

import (
	"context"
	"fmt"

	"github.com/exocomp/exocomp/orchestrator"
)

// Inventory returns a workspace's standing inventory.
func (l *Ledger) Inventory(ctx context.Context, workspace string) (inv orchestrator.Inventory, err error) {
	err = l.read(ctx, "read inventory", func(q querier) error {
		var found bool
		inv, found, err = standing(ctx, q, workspace)
		if err != nil || found {
			return err
		}
		if _, err := workspaceByName(ctx, q, workspace); err != nil {
			return err
		}
		return orchestrator.Errorf(orchestrator.CodeNotFound, "%s was never captured", orchestrator.InventoryName(workspace)).
			WithHint("apply the workspace: exocomp workspace apply %s; or, if it is applied: exocomp workspace refresh %s", workspace, workspace)
	})
	return inv, err
}

// Inventories returns every standing inventory, by workspace.
func (l *Ledger) Inventories(ctx context.Context) (out []orchestrator.Inventory, err error) {
	err = l.read(ctx, "read inventories", func(q querier) (err error) {
		out, err = collect(ctx, q, scanInventory, inventorySelect+` ORDER BY workspace`)
		return err
	})
	return out, err
}

func standing(ctx context.Context, q querier, workspace string) (orchestrator.Inventory, bool, error) {
	return one(ctx, q, scanInventory, inventorySelect+` WHERE workspace = ?`, workspace)
}

const inventorySelect = `
	SELECT
		workspace,
		digest,
		content,
		path,
		hosts,
		captured,
		job_id,
		updated_at
	FROM inventory`

func scanInventory(row scanner) (i orchestrator.Inventory, err error) {
	err = row.Scan(&i.Workspace, &i.Digest, &i.Content, &i.Path, document{&i.Hosts}, &i.Captured, opt(&i.Job), &instant{&i.UpdatedAt})
	i.Hosts = nilIfEmpty(i.Hosts)
	return i, err
}

// captureInventory replaces the standing inventory of about's workspace, lets
// the run whose step 1 it is require it, and ends the admissions of hosts that
// it does not name.
func (t *tx) captureInventory(ctx context.Context, about orchestrator.Event, inv orchestrator.Inventory) error {
	err := t.exec(ctx, `
		INSERT INTO inventory (
			workspace,
			digest,
			content,
			path,
			hosts,
			captured,
			job_id,
			updated_at
		) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (workspace) DO UPDATE SET
			digest = excluded.digest,
			content = excluded.content,
			path = excluded.path,
			hosts = excluded.hosts,
			captured = excluded.captured,
			job_id = excluded.job_id,
			updated_at = excluded.updated_at`,
		about.Workspace, inv.Digest, inv.Content, inv.Path, texts(inv.Hosts), inv.Captured, null(about.Job), nanos(t.now))
	if err != nil {
		return err
	}
	if about.Step == orchestrator.StepTofuApply {
		if err := t.exec(ctx, `UPDATE run SET inventory = ? WHERE id = ?`, inv.Digest, about.Run); err != nil {
			return err
		}
	}
	err = t.exec(ctx, `
		DELETE FROM admission
		WHERE workspace = ? AND host NOT IN (SELECT value FROM json_each(?))`, about.Workspace, texts(inv.Hosts))
	if err != nil {
		return err
	}
	about.Kind = orchestrator.EventInventoryCaptured
	about.Message = fmt.Sprintf("captured %d output(s) to inventory %s naming %d host(s)", inv.Captured, inv.Path, len(inv.Hosts))
	return t.event(ctx, about)
}
