package jobs

import (
	"context"
	"os"
	"time"
)

// Began reports whether a phase was started in this attempt, by this daemon or
// one before it: [Attempt.Exec] will then not start it again. A handler that
// prepares files for a phase asks before it does so, because a tool that was
// adopted may be using them.
func (a *Attempt) Began(phase string) bool {
	_, err := os.Stat(a.control(phase).dir)
	return err == nil
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
