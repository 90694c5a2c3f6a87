package sshwait

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

// DefaultConcurrency is how many hosts are tried at once. A host that is down
// costs a descriptor or two, not work, so it is generous.
const DefaultConcurrency = 1024

const (
	// A host is tried again after firstDelay, then ever later up to maxDelay:
	// that is also how long it may take to notice that it came up.
	firstDelay = 50 * time.Millisecond
	maxDelay   = 400 * time.Millisecond
	// nameDelay is for names that do not resolve: name servers are shared.
	nameDelay = time.Second

	// A connection that is not there after connectPatience gets a second one
	// beside it: the kernel repeats a lost SYN after 1 s and 3 s only.
	connectPatience = 400 * time.Millisecond
	// A peer that accepted is probably a slow sshd, and OpenSSH counts
	// connections without a login against us: it is asked again rarely.
	bannerPatience = 3 * time.Second

	connectTimeout = 3 * time.Second
	bannerTimeout  = 30 * time.Second
)

// Target is one host to wait for.
type Target struct {
	Name string
	Host string // IPv6 without brackets
	Port int
}

// HostResult is how one host fared.
type HostResult struct {
	Name    string
	Address string        // host:port as dialled
	Ready   bool          // its banner was read
	Took    time.Duration // from the start of the wait
	Err     error         // where it is not ready: the last error, in plain words
}

// Options bound a wait.
type Options struct {
	Deadline    time.Time // for all hosts together; zero: only the context ends the wait
	Concurrency int       // hosts that are tried at once; 0: DefaultConcurrency

	// Dial connects; it must return when its context ends. Nil: TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// OnResult is told each result as it comes, one at a time; or nil.
	OnResult func(HostResult)
}

// Wait tries every target, all at once up to the bound, until it sends the
// banner of an SSH server (RFC 4253 §4.2), and answers in the targets' order.
// It returns when all are ready, or at the deadline, or when ctx ends,
// whatever the peers do, and leaves nothing behind. It has no effect on a host
// but connections that are closed again, so it may be repeated.
func Wait(ctx context.Context, targets []Target, o Options) []HostResult {
	if o.Concurrency <= 0 {
		o.Concurrency = DefaultConcurrency
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{KeepAlive: -1}).DialContext
	}
	if !o.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, o.Deadline)
		defer cancel()
	}
	w := &waiter{Options: o, slots: make(chan struct{}, o.Concurrency), start: time.Now()}
	w.waiting.Store(int64(len(targets)))
	results := make([]HostResult, len(targets))
	var hosts sync.WaitGroup
	for i, t := range targets {
		hosts.Go(func() { results[i] = w.host(ctx, t) })
	}
	hosts.Wait()
	return results
}

// waiter is one call of Wait.
type waiter struct {
	Options
	slots    chan struct{} // held by each host that is being tried
	waiting  atomic.Int64  // hosts that are not ready
	start    time.Time
	onResult sync.Mutex
}

// crowded reports whether hosts queue for slots. Then nobody may keep one for
// a try that looks vain, nor a second connection.
func (w *waiter) crowded() bool { return w.waiting.Load() > int64(w.Concurrency) }

func (w *waiter) host(ctx context.Context, t Target) HostResult {
	h := &host{waiter: w, address: orchestrator.DialAddress(t.Host, t.Port)}
	ready := h.wait(ctx)
	w.waiting.Add(-1)
	r := HostResult{Name: t.Name, Address: h.address, Ready: ready, Took: time.Since(w.start)}
	if !ready {
		r.Err = h.last
	}
	if w.OnResult != nil {
		w.onResult.Lock()
		defer w.onResult.Unlock()
		w.OnResult(r)
	}
	return r
}

// host is one target's loop. At most two tries run at a time: a fresh one, and
// an elder that was given up on and may still be the first to succeed, be it
// that the way is long or the server slow.
type host struct {
	*waiter
	address string
	fresh   *try
	elder   *try
	tries   int
	last    error // of the newest try that told something
}

// wait returns true when a banner was read, false when ctx ended.
func (h *host) wait(ctx context.Context) bool {
	defer h.stop()
	delay := firstDelay
	for {
		select {
		case h.slots <- struct{}{}:
		case <-ctx.Done():
			return h.ended()
		}
		ready, again := h.tryOnce(ctx)
		<-h.slots
		if ready {
			return true
		}
		if ctx.Err() != nil {
			return h.ended()
		}
		if again {
			continue
		}
		pause := delay/2 + rand.N(delay/2) //nolint:gosec // jitter, not a secret
		if unresolved(h.last) {
			pause = nameDelay
		}
		delay = min(delay*8/5, maxDelay)
		if h.pause(ctx, pause) {
			return true
		}
	}
}

// tryOnce starts a fresh try and watches it until it ends or patience does; in
// the second case the next try is due at once.
func (h *host) tryOnce(ctx context.Context) (ready, again bool) {
	h.fresh = h.begin(ctx)
	h.tries++
	patience := time.NewTimer(h.patience(connectPatience))
	defer patience.Stop()
	connected := h.fresh.connected
	for {
		select {
		case err := <-h.fresh.done:
			h.fresh = nil
			if err == nil {
				return true, false
			}
			h.last = err
			return false, false
		case err := <-h.elder.ended():
			if h.elderEnded(err) {
				return true, false
			}
		case <-connected:
			connected = nil
			patience.Reset(h.patience(bannerPatience))
		case <-patience.C:
			h.giveUp()
			return false, true
		case <-ctx.Done():
			return false, false
		}
	}
}

// patience returns how long a fresh try is watched. In a crowd there is no
// elder to be slow in its place, so it varies up to the whole timeout.
func (h *host) patience(d time.Duration) time.Duration {
	if !h.crowded() {
		return d
	}
	return min(d<<(h.tries%4), bannerPatience)
}

// giveUp makes the fresh try the elder where there is none and room for it,
// and ends it otherwise.
func (h *host) giveUp() {
	if h.elder == nil && !h.crowded() {
		h.elder, h.fresh = h.fresh, nil
		return
	}
	err := h.fresh.stop()
	h.fresh = nil
	if h.last == nil || !isConnecting(err) {
		h.last = err
	}
}

// elderEnded takes the elder's end and reports whether it was a success.
func (h *host) elderEnded(err error) bool {
	h.elder = nil
	if err != nil {
		h.last = err
	}
	return err == nil
}

// pause waits for d, and reports whether the elder succeeded meanwhile.
func (h *host) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case err := <-h.elder.ended():
			if h.elderEnded(err) {
				return true
			}
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// ended looks at the tries that the end of the wait cut off: one may have
// succeeded in that moment, and where no try got as far as being connected, one
// that is says more than the last error.
func (h *host) ended() (ready bool) {
	for _, t := range []*try{h.elder, h.fresh} {
		if t == nil {
			continue
		}
		err := t.stop()
		if err == nil {
			ready = true
		} else if h.last == nil || (isConnecting(h.last) && !isConnecting(err)) {
			h.last = err
		}
	}
	h.elder, h.fresh = nil, nil
	if h.last == nil {
		h.last = plain("not tried yet", nil)
	}
	return ready
}

// stop ends both tries and waits for them.
func (h *host) stop() {
	for _, t := range []*try{h.elder, h.fresh} {
		if t != nil {
			_ = t.stop()
		}
	}
}
