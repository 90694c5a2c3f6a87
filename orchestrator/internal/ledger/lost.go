package ledger

import (
	"context"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
)

// AcceptLost drops the suspicion that lies on a workspace: a person says that
// the creates are not there, or does not mind. It returns what was accepted.
func (l *Ledger) AcceptLost(ctx context.Context, workspace string, by orchestrator.Peer) ([]orchestrator.LostCreate, error) {
	var accepted []orchestrator.LostCreate
	err := l.write(ctx, "accept lost creates", func(t *tx) error {
		w, err := workspaceByName(ctx, t, workspace)
		if err != nil {
			return err
		}
		accepted = w.Lost
		for _, c := range accepted {
			e := orchestrator.Event{
				Kind:      orchestrator.EventLostAccepted,
				Workspace: workspace,
				Message:   c.Address + " may exist without being in the state; accepted by " + who(by),
				By:        by,
			}
			if err := t.event(ctx, e); err != nil {
				return err
			}
		}
		return t.exec(ctx, `DELETE FROM lost_create WHERE workspace = ?`, workspace)
	})
	return accepted, err
}

// FoundLost drops the suspicion from addresses that are in the state by now.
func (l *Ledger) FoundLost(ctx context.Context, workspace string, addresses []string) error {
	return l.write(ctx, "drop suspicion", func(t *tx) error {
		return t.findLost(ctx, orchestrator.Event{Workspace: workspace}, addresses)
	})
}

// suspectLost records creates that the state may lack. A known one keeps the
// time of its first suspicion.
func (t *tx) suspectLost(ctx context.Context, j jobRow, lost []orchestrator.LostCreate) error {
	for _, c := range lost {
		err := t.exec(ctx, `
			INSERT INTO lost_create (
				workspace,
				address,
				provider_id,
				job_id,
				since
			) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (workspace, address) DO UPDATE SET
				provider_id = excluded.provider_id
			WHERE excluded.provider_id <> ''`,
			j.Workspace, c.Address, c.ID, j.ID, nanos(t.now))
		if err != nil {
			return err
		}
		e := j.event(orchestrator.EventLostSuspected, c.Address+" may exist without being in the state; if it does: "+c.ImportCommand())
		e.Warning = true
		if err := t.event(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// findLost drops the suspicion from addresses that are in the state.
func (t *tx) findLost(ctx context.Context, about orchestrator.Event, addresses []string) error {
	for _, a := range addresses {
		n, err := t.affect(ctx, `DELETE FROM lost_create WHERE workspace = ? AND address = ?`, about.Workspace, a)
		if err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		about.Kind, about.Message = orchestrator.EventLostFound, a+" is not missing any more"
		if err := t.event(ctx, about); err != nil {
			return err
		}
	}
	return nil
}

func lostOf(ctx context.Context, q querier, workspace string) ([]orchestrator.LostCreate, error) {
	return collect(ctx, q, scanLost, `
		SELECT
			address,
			provider_id,
			job_id,
			since
		FROM lost_create WHERE workspace = ? ORDER BY address`, workspace)
}

func scanLost(row scanner) (c orchestrator.LostCreate, err error) {
	err = row.Scan(&c.Address, &c.ID, &c.Job, &instant{&c.Since})
	return c, err
}

// refuseLost refuses an apply of a workspace with lost creates, unless its
// request accepts them. The error names each and says how to import it.
func refuseLost(w orchestrator.Workspace, accepted bool) error {
	if accepted || len(w.Lost) == 0 {
		return nil
	}
	addresses := make([]string, len(w.Lost))
	imports := make([]string, len(w.Lost))
	for i, c := range w.Lost {
		addresses[i], imports[i] = c.Address, c.ImportCommand()
	}
	return orchestrator.Errorf(orchestrator.CodeRefused,
		"an interrupted apply of workspace %s may have made %d resource(s) that its state lacks: %s",
		w.Name, len(w.Lost), strings.Join(addresses, ", ")).
		WithHint("in %s run: %s; then: exocomp workspace refresh %s; or, if they do not exist, say --accept-lost",
			w.Dir, strings.Join(imports, " && "), w.Name)
}
