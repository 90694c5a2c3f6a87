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

// doingInterval bounds how often [Attempt.Doing] writes to the ledger.
const doingInterval = 250 * time.Millisecond

// Doing records what the tool does at the moment, as [Attempt.Progress] without
// a host. Of messages that follow each other quickly most are dropped: it is
// for somebody who watches. It must be called from the handler's goroutine.
func (a *Attempt) Doing(ctx context.Context, message string) {
	now := time.Now()
	if now.Sub(a.doing) < doingInterval {
		return
	}
	a.doing = now
	a.Progress(ctx, message, "")
}
