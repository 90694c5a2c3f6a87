package ledger

import (
	"context"
	"database/sql"
	"time"
)

// clock never goes back, not even over a restart: readers order by time, and
// ids begin with one. Behind a machine whose clock was set back it stands still
// until the machine has caught up.
type clock struct {
	source func() time.Time
	last   time.Time
}

// newClock returns a clock that is past last, the newest instant on record. It
// begins in a fresh millisecond, which is what a ULID resolves.
func newClock(source func() time.Time, last time.Time) *clock {
	if source == nil {
		source = time.Now
	}
	c := &clock{source: source}
	if !last.IsZero() {
		c.last = last.Truncate(time.Millisecond).Add(time.Millisecond)
	}
	return c
}

func (c *clock) now() time.Time {
	if t := c.source().UTC().Round(0); t.After(c.last) {
		c.last = t
	}
	return c.last
}

// newestInstant returns when the newest event was written: every change has one.
func newestInstant(ctx context.Context, db *sql.DB) (time.Time, error) {
	var at time.Time
	err := db.QueryRowContext(ctx, `SELECT (SELECT at FROM event ORDER BY id DESC LIMIT 1)`).Scan(&instant{&at})
	return at, err
}
