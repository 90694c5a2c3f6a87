package ledger

import (
	"context"
	"fmt"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
)

// AppendEvent records a fact that no other method records, such as an adopted
// job or a denied call. Its id and time are the ledger's.
func (l *Ledger) AppendEvent(ctx context.Context, e orchestrator.Event) error {
	return l.write(ctx, "append event", func(t *tx) error { return t.event(ctx, e) })
}

// Events returns the events that f selects, oldest first.
func (l *Ledger) Events(ctx context.Context, f orchestrator.EventFilter) ([]orchestrator.Event, error) {
	var w where
	w.add(`id > ?`, f.After)
	if f.Workspace != "" {
		w.add(`workspace = ?`, f.Workspace)
	}
	if f.Run != "" {
		w.add(`run_id = ?`, f.Run)
	}
	if f.Job != "" {
		w.add(`job_id = ?`, f.Job)
	}
	if f.Security {
		w.add(`security = 1`)
	}
	if f.Newest > 0 {
		newest := `SELECT id FROM event` + w.String() + ` ORDER BY id DESC` + limit(f.Newest)
		w.add(`id >= (SELECT min(id) FROM (`+newest+`))`, w.args...)
	}
	var out []orchestrator.Event
	err := l.read(ctx, "read events", func(q querier) (err error) {
		out, err = collect(ctx, q, scanEvent, `
			SELECT
				id,
				at,
				kind,
				workspace,
				run_id,
				step,
				job_id,
				host,
				state,
				warning,
				message,
				peer
			FROM event`+w.String()+` ORDER BY id`+limit(f.Limit), w.args...)
		return err
	})
	return out, err
}

// PruneProgress removes the progress of jobs that is older than
// [orchestrator.LogRetention], and returns how many events that were. No other
// event is ever removed.
func (l *Ledger) PruneProgress(ctx context.Context) (n int, err error) {
	err = l.write(ctx, "prune progress", func(t *tx) (err error) {
		n, err = t.affect(ctx, `
			DELETE FROM event
			WHERE kind = '`+string(orchestrator.EventJobProgress)+`' AND at < (
				SELECT at FROM event ORDER BY id DESC LIMIT 1
			) - ?`, orchestrator.LogRetention.Nanoseconds())
		return err
	})
	return n, err
}

// LastEventID returns the id of the newest event, 0 before the first.
func (l *Ledger) LastEventID(ctx context.Context) (int64, error) {
	var id int64
	err := l.read(ctx, "read events", func(q querier) error {
		return q.QueryRowContext(ctx, `SELECT coalesce(max(id), 0) FROM event`).Scan(&id)
	})
	return id, err
}

// event appends e to the transaction.
func (t *tx) event(ctx context.Context, e orchestrator.Event) error {
	t.events++
	return t.exec(ctx, `
		INSERT INTO event (
			at,
			kind,
			security,
			workspace,
			run_id,
			step,
			job_id,
			host,
			state,
			warning,
			message,
			peer
		) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		nanos(t.now), e.Kind, e.Kind.Security(), null(e.Workspace), null(e.Run), null(e.Step), null(e.Job),
		null(e.Host), null(e.State), e.Warning, oneLine(e.Message), document{e.By})
}

func scanEvent(row scanner) (e orchestrator.Event, err error) {
	err = row.Scan(&e.ID, &instant{&e.At}, &e.Kind, opt(&e.Workspace), opt(&e.Run), opt(&e.Step), opt(&e.Job),
		opt(&e.Host), opt(&e.State), &e.Warning, &e.Message, document{&e.By})
	return e, err
}

// oneLine keeps an event one line whatever a tool's message holds.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// where collects the conditions of a filter.
type where struct {
	conditions []string
	args       []any
}

func (w *where) add(condition string, args ...any) {
	w.conditions = append(w.conditions, condition)
	w.args = append(w.args, args...)
}

// String returns the WHERE clause, or nothing.
func (w *where) String() string {
	if len(w.conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conditions, " AND ")
}

// limit returns a LIMIT clause; 0 is no limit.
func limit(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" LIMIT %d", n)
}
