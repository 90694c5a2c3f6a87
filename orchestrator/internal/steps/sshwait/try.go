package sshwait

import (
	"context"
	"net"
	"time"
)

// try is one connection, from the dial to the banner.
type try struct {
	connected chan struct{} // closed when the peer has accepted
	done      chan error    // receives once: nil when the banner was read
	cancel    context.CancelFunc
}

// begin starts a try that runs until it has a banner or an error.
func (h *host) begin(ctx context.Context) *try {
	ctx, cancel := context.WithCancel(ctx)
	t := &try{connected: make(chan struct{}), done: make(chan error, 1), cancel: cancel}
	go func() {
		defer cancel()
		t.done <- t.run(ctx, h.Dial, h.address)
	}()
	return t
}

func (t *try) run(ctx context.Context, dial func(context.Context, string, string) (net.Conn, error), address string) error {
	dialCtx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := dial(dialCtx, "tcp", address)
	if err != nil {
		return connectError(dialCtx, err)
	}
	defer func() { _ = conn.Close() }()
	close(t.connected)
	// The read ends at the timeout however busily the peer trickles, and with
	// the context: an old deadline is what interrupts it.
	if err := conn.SetReadDeadline(time.Now().Add(bannerTimeout)); err != nil {
		return bannerError(err, 0)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })()
	return readBanner(conn)
}

// stop ends the try, waits for it and returns how it ended. It may be called
// once, and not after the end was received.
func (t *try) stop() error {
	t.cancel()
	return <-t.done
}

// ended returns the channel that receives the try's end; nil, which never
// receives, for no try.
func (t *try) ended() <-chan error {
	if t == nil {
		return nil
	}
	return t.done
}
