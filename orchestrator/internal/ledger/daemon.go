package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

// StartDaemon records that a daemon has begun. It reports whether the one before
// it stopped in order, or there was none.
func (l *Ledger) StartDaemon(ctx context.Context, version string, pid int) (clean bool, err error) {
	err = l.writeAlways(ctx, "start daemon", func(t *tx) error {
		var started, stopped time.Time
		err := t.QueryRowContext(ctx, `SELECT started_at, stopped_at FROM daemon`).
			Scan(&instant{&started}, &instant{&stopped})
		if err != nil {
			return err
		}
		clean = started.IsZero() || !stopped.IsZero()
		err = t.exec(ctx, `
			UPDATE daemon SET
				version = ?,
				pid = ?,
				started_at = ?,
				stopped_at = NULL`,
			version, pid, nanos(t.now))
		if err != nil {
			return err
		}
		e := orchestrator.Event{
			Kind:    orchestrator.EventDaemonStarted,
			Message: fmt.Sprintf("exocomp %s started, pid %d", version, pid),
		}
		if !clean {
			e.Warning = true
			e.Message += "; the one before it did not stop in order"
		}
		return t.event(ctx, e)
	})
	return clean, err
}

// StopDaemon records an orderly stop.
func (l *Ledger) StopDaemon(ctx context.Context) error {
	return l.writeAlways(ctx, "stop daemon", func(t *tx) error {
		if err := t.exec(ctx, `UPDATE daemon SET stopped_at = ?`, nanos(t.now)); err != nil {
			return err
		}
		return t.event(ctx, orchestrator.Event{Kind: orchestrator.EventDaemonStopped, Message: "exocomp stopped"})
	})
}

// SetDraining starts or ends a drain: while it lasts no job is claimed. It
// survives a restart.
func (l *Ledger) SetDraining(ctx context.Context, on bool, by orchestrator.Peer) error {
	return l.writeAlways(ctx, "set draining", func(t *tx) error {
		n, err := t.affect(ctx, `UPDATE daemon SET draining = ? WHERE draining <> ?`, on, on)
		if err != nil || n == 0 {
			return err
		}
		e := orchestrator.Event{Kind: orchestrator.EventDrainStarted, Message: "drain started by " + who(by), By: by}
		if !on {
			e.Kind, e.Message = orchestrator.EventDrainEnded, "drain ended by "+who(by)
		}
		return t.event(ctx, e)
	})
}

// Draining reports whether a drain is on.
func (l *Ledger) Draining(ctx context.Context) (on bool, err error) {
	err = l.read(ctx, "read draining", func(q querier) (err error) {
		on, err = draining(ctx, q)
		return err
	})
	return on, err
}

func draining(ctx context.Context, q querier) (on bool, err error) {
	err = q.QueryRowContext(ctx, `SELECT draining FROM daemon`).Scan(&on)
	return on, err
}
