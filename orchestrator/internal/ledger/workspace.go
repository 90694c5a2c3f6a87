package ledger

import (
	"context"
	"slices"

	"github.com/exocomp/exocomp/orchestrator"
)

// AddWorkspace registers w, or changes its settings. Adding the same again
// changes nothing; changing it while a run or job holds it is a
// [orchestrator.CodeConflict], because that would change under them. While
// creates may be lost it stays with the state that lacks them: any other is
// [orchestrator.CodeRefused].
func (l *Ledger) AddWorkspace(ctx context.Context, w orchestrator.Workspace, by orchestrator.Peer) (orchestrator.Workspace, error) {
	if err := w.Validate(); err != nil {
		return orchestrator.Workspace{}, err
	}
	err := l.write(ctx, "add workspace", func(t *tx) error {
		old, found, err := findWorkspace(ctx, t, w.Name)
		if err != nil {
			return err
		}
		if found {
			if sameWorkspace(old, w) {
				w = old
				return nil
			}
			if _, has, err := provisionOf(ctx, t, w.Name); err != nil {
				return err
			} else if has && old.HandedOver() {
				return orchestrator.Errorf(orchestrator.CodeConflict, "the hosts of workspace %s are handed over by an exocomp_provision", w.Name).
					WithHint("choose another name, or destroy that resource first")
			}
			if !w.SameState(old) && !old.HandedOver() {
				err := barredByLost(old, "change it", "if they do not exist: exocomp workspace apply "+old.Name+" --accept-lost")
				if err != nil {
					return err
				}
			}
			w.CreatedAt, w.UpdatedAt, w.Lost = old.CreatedAt, t.now, old.Lost
			return t.changeWorkspace(ctx, w, by)
		}
		w.CreatedAt, w.UpdatedAt, w.Lost = t.now, t.now, nil
		if err := t.insertWorkspace(ctx, w); err != nil {
			return err
		}
		return t.event(ctx, orchestrator.Event{
			Kind:      orchestrator.EventWorkspaceAdded,
			Workspace: w.Name,
			Message:   "workspace added: " + w.Dir,
			By:        by,
		})
	})
	return w, err
}

// Workspace returns the workspace of that name.
func (l *Ledger) Workspace(ctx context.Context, name string) (w orchestrator.Workspace, err error) {
	err = l.read(ctx, "read workspace", func(q querier) (err error) {
		w, err = workspaceByName(ctx, q, name)
		return err
	})
	return w, err
}

// Workspaces returns every workspace, by name.
func (l *Ledger) Workspaces(ctx context.Context) (out []orchestrator.Workspace, err error) {
	err = l.read(ctx, "read workspaces", func(q querier) (err error) {
		out, err = collect(ctx, q, scanWorkspace, workspaceSelect+` ORDER BY name`)
		for i := range out {
			if err == nil {
				out[i].Lost, err = lostOf(ctx, q, out[i].Name)
			}
		}
		return err
	})
	return out, err
}

// RemoveWorkspace forgets a workspace with its inventory, its admissions and
// its claim on pins; a pin that nobody else refers to is retired. History
// stays. It is a [orchestrator.CodeConflict] while a run or job of it is open,
// and [orchestrator.CodeRefused] while creates may be lost, unless acceptLost
// says that a person knows.
func (l *Ledger) RemoveWorkspace(ctx context.Context, name string, acceptLost bool, by orchestrator.Peer) error {
	return l.write(ctx, "remove workspace", func(t *tx) error {
		w, err := workspaceByName(ctx, t, name)
		if err != nil {
			return err
		}
		open, err := openTurns(ctx, t, name)
		if err != nil {
			return err
		}
		if len(open) > 0 {
			return heldBy(open[0], "wait for it, or cancel it, before the workspace is removed")
		}
		again := "exocomp workspace remove " + name
		if err := barredByLost(w, again, "if you will look after them yourself: "+again+" --accept-lost"); err != nil && !acceptLost {
			return err
		}
		about := orchestrator.Event{Workspace: name, By: by}
		if err := t.acceptLost(ctx, w, about); err != nil {
			return err
		}
		if err := t.leavePins(ctx, about, nil, "workspace "+name+" was removed"); err != nil {
			return err
		}
		// The inventory and admissions go by ON DELETE CASCADE.
		if err := t.exec(ctx, `DELETE FROM workspace WHERE name = ?`, name); err != nil {
			return err
		}
		return t.event(ctx, orchestrator.Event{
			Kind:      orchestrator.EventWorkspaceRemoved,
			Workspace: name,
			Message:   "workspace removed",
			By:        by,
		})
	})
}

const workspaceSelect = `
	SELECT
		name,
		dir,
		tofu_workspace,
		var_files,
		backend_config,
		cli_config,
		approval,
		watch,
		created_at,
		updated_at
	FROM workspace`

func scanWorkspace(row scanner) (w orchestrator.Workspace, err error) {
	err = row.Scan(&w.Name, &w.Dir, &w.TofuWorkspace, document{&w.VarFiles}, document{&w.BackendConfig},
		&w.CLIConfig, &w.Approval, &w.Watch, &instant{&w.CreatedAt}, &instant{&w.UpdatedAt})
	w.VarFiles, w.BackendConfig = nilIfEmpty(w.VarFiles), nilIfEmpty(w.BackendConfig)
	return w, err
}

func (t *tx) insertWorkspace(ctx context.Context, w orchestrator.Workspace) error {
	return t.exec(ctx, `
		INSERT INTO workspace (
			name,
			dir,
			tofu_workspace,
			var_files,
			backend_config,
			cli_config,
			approval,
			watch,
			watched,
			created_at,
			updated_at
		) VALUES (?, ?, ?, ?, ?, ?, ?, ?, '', ?, ?)`,
		w.Name, w.Dir, w.TofuWorkspace, texts(w.VarFiles), texts(w.BackendConfig), w.CLIConfig, w.Approval, w.Watch,
		nanos(w.CreatedAt), nanos(w.UpdatedAt))
}

// changeWorkspace replaces the settings of a workspace that nobody holds.
func (t *tx) changeWorkspace(ctx context.Context, w orchestrator.Workspace, by orchestrator.Peer) error {
	turn, held, err := holder(ctx, t, w.Name)
	if err != nil {
		return err
	}
	if held {
		return heldBy(turn, "change its settings when that is done")
	}
	err = t.exec(ctx, `
		UPDATE workspace SET
			dir = ?,
			tofu_workspace = ?,
			var_files = ?,
			backend_config = ?,
			cli_config = ?,
			approval = ?,
			watched = iif(watch = 1 AND dir = ?1, watched, ''),
			watch = ?,
			updated_at = ?
		WHERE name = ?`,
		w.Dir, w.TofuWorkspace, texts(w.VarFiles), texts(w.BackendConfig), w.CLIConfig, w.Approval, w.Watch,
		nanos(w.UpdatedAt), w.Name)
	if err != nil {
		return err
	}
	return t.event(ctx, orchestrator.Event{
		Kind:      orchestrator.EventWorkspaceChanged,
		Workspace: w.Name,
		Message:   "workspace settings changed: " + w.Dir,
		By:        by,
	})
}

func findWorkspace(ctx context.Context, q querier, name string) (orchestrator.Workspace, bool, error) {
	w, found, err := one(ctx, q, scanWorkspace, workspaceSelect+` WHERE name = ?`, name)
	if err != nil || !found {
		return w, false, err
	}
	w.Lost, err = lostOf(ctx, q, name)
	return w, true, err
}

func workspaceByName(ctx context.Context, q querier, name string) (orchestrator.Workspace, error) {
	w, found, err := findWorkspace(ctx, q, name)
	if err == nil && !found {
		err = orchestrator.Errorf(orchestrator.CodeNotFound, "there is no workspace %q", name).
			WithHint("list them: exocomp workspace list; add it: exocomp workspace add NAME DIR")
	}
	return w, err
}

// sameWorkspace compares what a person states.
func sameWorkspace(a, b orchestrator.Workspace) bool {
	return a.Dir == b.Dir && a.TofuWorkspace == b.TofuWorkspace && a.CLIConfig == b.CLIConfig &&
		a.Approval == b.Approval && a.Watch == b.Watch && slices.Equal(a.VarFiles, b.VarFiles) &&
		slices.Equal(a.BackendConfig, b.BackendConfig)
}

func nilIfEmpty(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}
