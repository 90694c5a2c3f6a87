package ledger

import (
	"context"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
)

// FoundLost drops the suspicion from addresses that are in the state by now.
func (l *Ledger) FoundLost(ctx context.Context, workspace string, addresses []string) error {
	return l.write(ctx, "drop suspicion", func(t *tx) error {
		return t.findLost(ctx, orchestrator.Event{Workspace: workspace}, addresses)
	})
}

// suspectLost records creates that the state may lack. A known one keeps the
// time of its first suspicion.
func (t *tx) suspectLost(ctx context.Context, j jobRow, lost []orchestrator.LostCreate) error {
	if len(lost) == 0 {
		return nil
	}
	w, err := workspaceByName(ctx, t, j.Workspace)
	if err != nil {
		return err
	}
	for _, c := range lost {
		err := t.exec(ctx, `
			INSERT INTO lost_create (
				workspace,
				address,
				provider_id,
				prior_id,
				job_id,
				since
			) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (workspace, address) DO UPDATE SET
				provider_id = excluded.provider_id,
				prior_id = excluded.prior_id
			WHERE excluded.provider_id <> ''`,
			j.Workspace, c.Address, c.ID, c.PriorID, j.ID, nanos(t.now))
		if err != nil {
			return err
		}
		e := j.event(orchestrator.EventLostSuspected, c.Address+" may exist without being in the state; if it does: "+w.ImportCommand(c))
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
			prior_id,
			job_id,
			since
		FROM lost_create WHERE workspace = ? ORDER BY address`, workspace)
}

func scanLost(row scanner) (c orchestrator.LostCreate, err error) {
	err = row.Scan(&c.Address, &c.ID, &c.PriorID, &c.Job, &instant{&c.Since})
	return c, err
}

// refuseLost refuses an apply of a workspace with lost creates, unless its
// request accepts them, see [tx.acceptLost].
func refuseLost(w orchestrator.Workspace, accepts bool) error {
	if accepts {
		return nil
	}
	return barredByLost(w, "exocomp workspace refresh "+w.Name, "if they do not exist, say --accept-lost")
}

// barredByLost is the refusal of what must not be done to a workspace while
// creates may be lost; nil where none are. The error names each and says how to
// import it, what is to be done then, and how to go on without.
func barredByLost(w orchestrator.Workspace, then, otherwise string) error {
	if len(w.Lost) == 0 {
		return nil
	}
	addresses := make([]string, len(w.Lost))
	for i, c := range w.Lost {
		addresses[i] = c.Address
	}
	return orchestrator.Errorf(orchestrator.CodeRefused,
		"an interrupted apply of workspace %s may have made %d resource(s) that its state lacks: %s",
		w.Name, len(w.Lost), strings.Join(addresses, ", ")).
		WithHint("look whether they exist; bring them into the state: %s; then: %s; or, %s",
			w.ImportCommand(w.Lost...), then, otherwise)
}

// acceptLost drops the suspicion from the creates that lie on a workspace now: a
// person, whom about names, says that they are not there, or does not mind.
func (t *tx) acceptLost(ctx context.Context, w orchestrator.Workspace, about orchestrator.Event) error {
	for _, c := range w.Lost {
		about.Kind = orchestrator.EventLostAccepted
		about.Message = c.Address + " may exist without being in the state; accepted by " + who(about.By)
		if err := t.event(ctx, about); err != nil {
			return err
		}
		err := t.exec(ctx, `DELETE FROM lost_create WHERE workspace = ? AND address = ?`, w.Name, c.Address)
		if err != nil {
			return err
		}
	}
	return nil
}
