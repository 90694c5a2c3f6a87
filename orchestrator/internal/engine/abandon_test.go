package engine

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// deadlines is a Ledger with a run that is due in a minute.
type deadlines struct {
	Ledger
	due       time.Time
	fails     int // calls that fail first
	abandoned []time.Time
}

func (d *deadlines) Changed() <-chan struct{} { return make(chan struct{}) }

func (d *deadlines) AbandonRuns(context.Context) (time.Time, error) {
	if d.fails > 0 {
		d.fails--
		return time.Time{}, errors.New("disk full")
	}
	if time.Now().Before(d.due) {
		return d.due, nil
	}
	d.abandoned = append(d.abandoned, time.Now())
	return time.Time{}, nil
}

func TestAnUnclaimedRunIsLookedAtWhenItIsDue(t *testing.T) {
	for name, fails := range map[string]int{"at once": 0, "after a ledger that failed": 2} {
		synctest.Test(t, func(t *testing.T) {
			l := &deadlines{due: time.Now().Add(time.Minute), fails: fails}
			e := New(Config{Ledger: l, Logger: slog.New(slog.DiscardHandler)})
			ctx, stop := context.WithTimeout(t.Context(), time.Hour)
			defer stop()
			if err := e.abandon(ctx); err != nil {
				t.Fatal(err)
			}
			if len(l.abandoned) != 1 || l.abandoned[0].Sub(l.due) > time.Second {
				t.Errorf("%s: looked at %v, due at %v", name, l.abandoned, l.due)
			}
		})
	}
}
