package ledger

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// tx is one writing transaction. Everything in it happens at the same now.
type tx struct {
	*sql.Tx
	now    time.Time
	ids    *ids
	events int // appended so far
}

// querier is what reads need; a transaction of either kind has it.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// write runs fn in one transaction and commits it; on an error nothing is
// changed. Whoever waits on Changed is woken after the commit.
func (l *Ledger) write(ctx context.Context, op string, fn func(*tx) error) error {
	if l.writer == nil {
		return l.refuseReadOnly()
	}
	s, err := l.writer.BeginTx(ctx, nil)
	if err != nil {
		return l.explain(ctx, op, err)
	}
	defer func() { _ = s.Rollback() }() // nothing after a commit
	t := &tx{Tx: s, now: l.clock.now(), ids: l.ids}
	if err := fn(t); err != nil {
		return l.explain(ctx, op, err)
	}
	if err := s.Commit(); err != nil {
		return l.explain(ctx, op, err)
	}
	if t.events > 0 {
		l.wake()
	}
	l.reserve.fill()
	return nil
}

// writeAlways is [Ledger.write] for what must be recorded on a full disk, too: it
// may use the reserve, and then runs fn again.
func (l *Ledger) writeAlways(ctx context.Context, op string, fn func(*tx) error) error {
	err := l.write(ctx, op, fn)
	for range reserveTries {
		if !isFull(err) || !l.reserve.release() {
			break
		}
		err = l.write(ctx, op, fn)
	}
	return err
}

// read runs fn on one consistent snapshot, the newest there is.
func (l *Ledger) read(ctx context.Context, op string, fn func(querier) error) error {
	s, err := l.reader.BeginTx(ctx, nil)
	if err != nil {
		return l.explain(ctx, op, err)
	}
	defer func() { _ = s.Rollback() }()
	if err := fn(s); err != nil {
		return l.explain(ctx, op, err)
	}
	return nil
}

// exec runs one statement.
func (t *tx) exec(ctx context.Context, query string, args ...any) error {
	_, err := t.ExecContext(ctx, query, args...)
	return err
}

// affect runs one statement and returns how many rows it changed.
func (t *tx) affect(ctx context.Context, query string, args ...any) (int, error) {
	res, err := t.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	return int(n), err
}

// scanner is a row to scan.
type scanner interface{ Scan(dst ...any) error }

// collect returns every row of a query.
func collect[T any](ctx context.Context, q querier, scan func(scanner) (T, error), query string, args ...any) ([]T, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var out []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

// one returns the only row of a query, and whether there is one.
func one[T any](ctx context.Context, q querier, scan func(scanner) (T, error), query string, args ...any) (T, bool, error) {
	v, err := scan(q.QueryRowContext(ctx, query, args...))
	if errors.Is(err, sql.ErrNoRows) {
		return v, false, nil
	}
	return v, err == nil, err
}

// scanText scans a row of one text.
func scanText[T ~string](row scanner) (T, error) {
	var v T
	err := row.Scan(&v)
	return v, err
}
