package jobs

import (
	"context"
	"time"
)

// Began reports whether a phase was started in this attempt, by this daemon or
// one before it: [Attempt.Exec] will then not start it again. A supervisor that
// ended before it started anything does not count.
func (a *Attempt) Began(phase string) bool {
	f, err := a.look(a.control(phase))
	closeLock(f.lock)
	return err != nil || f.verdict != phaseFresh
}

// Every message of an ordinary play or apply is recorded; of one that has
// thousands, a few a second.
const (
	doingBurst    = 100
	doingInterval = 250 * time.Millisecond
)

// Doing records what the tool does at the moment, as [Attempt.Progress] without
// a host. Of very many messages that follow each other quickly most are dropped:
// it is for somebody who watches. It must be called from the handler's goroutine.
func (a *Attempt) Doing(ctx context.Context, message string) {
	if a.doing.take(time.Now()) {
		a.Progress(ctx, message, "")
	}
}

// budget says how much may be recorded: at first and after a rest doingBurst,
// then one in each doingInterval. The zero value is full.
type budget struct{ spent time.Time }

// take reports whether one more may be recorded now.
func (b *budget) take(now time.Time) bool {
	const full = doingBurst * doingInterval
	if first := now.Add(-full); b.spent.Before(first) {
		b.spent = first
	}
	next := b.spent.Add(doingInterval)
	if next.After(now) {
		return false
	}
	b.spent = next
	return true
}
