package daemon

import (
	"context"
	"fmt"
	"path"
	"sync"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// denialInterval is how often at most the history tells that one user was denied
// one call: it is append-only, and whoever is denied must not fill the disk.
const denialInterval = time.Minute

// denials counts denied calls between two events about them.
type denials struct {
	mu   sync.Mutex
	seen map[denial]*denialCount
}

type denial struct {
	uid    int
	method string
}

type denialCount struct {
	told   time.Time // when the newest event was written
	untold int       // denials since
}

// count notes a denial at now. It reports whether it is to be told, and how many
// were not told since the one before.
func (d *denials) count(what denial, now time.Time) (untold int, tell bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen == nil {
		d.seen = map[denial]*denialCount{}
	}
	c := d.seen[what]
	if c == nil {
		c = &denialCount{}
		d.seen[what] = c
	} else if now.Sub(c.told) < denialInterval {
		c.untold++
		return 0, false
	}
	untold, c.told, c.untold = c.untold, now, 0
	return untold, true
}

// denied records a call that was refused for its token.
func (d *Daemon) denied(ctx context.Context, method string, err error) {
	peer := rpc.PeerFrom(ctx)
	method = path.Base(method)
	untold, tell := d.denials.count(denial{peer.UID, method}, time.Now())
	if !tell {
		return
	}
	message := fmt.Sprintf("%s denied to uid %d: %s", method, peer.UID, orchestrator.FailureOf(err).Message)
	if untold > 0 {
		message += fmt.Sprintf(" (and %d times more since this was last told)", untold)
	}
	d.log.Warn("call denied", "method", method, "uid", peer.UID, "untold", untold, "err", err)
	event := orchestrator.Event{Kind: orchestrator.EventCallDenied, Warning: true, By: peer, Message: message}
	if err := d.ledger.AppendEvent(ctx, event); err != nil {
		d.log.Error("record denied call", "err", err)
	}
}
