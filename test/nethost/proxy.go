package nethost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
)

// Proxy forwards TCP connections, as a gateway in front of a machine does. It
// accepts also while its target is not there; such a connection ends without a
// word.
type Proxy struct {
	lab      *Lab
	target   string
	listener net.Listener
	ctx      context.Context // ends with the proxy: the bound of its dials
	cancel   context.CancelFunc
	wait     sync.WaitGroup

	mu       sync.Mutex // guards what follows
	closed   bool
	accepted int
	open     map[net.Conn]struct{}
}

// Proxy starts to forward listen to target, both host:port. The address of
// listen is one of this machine, the lab's gateway as a rule, or one from
// [Lab.VacantAddr], which this machine then takes. Until the call nobody answers
// there, which makes a proxy that starts late.
func (l *Lab) Proxy(ctx context.Context, listen, target string) (*Proxy, error) {
	at, err := netip.ParseAddrPort(listen)
	if err != nil {
		return nil, fmt.Errorf("parse listen address: %w", err)
	}
	if l.slot.network().Contains(at.Addr()) && at.Addr() != l.slot.addr(1) {
		if err := ip(ctx, "addr replace "+at.Addr().String()+"/32 dev "+l.slot.bridge()); err != nil {
			return nil, fmt.Errorf("take address of proxy: %w", err)
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return nil, err
	}
	p := &Proxy{lab: l, target: target, listener: listener, open: map[net.Conn]struct{}{}}
	p.ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		p.cancel()
		return nil, errors.Join(errors.New("the lab is closed"), listener.Close())
	}
	l.proxies[p] = struct{}{}
	p.wait.Go(p.accept)
	return p, nil
}

// Addr returns where the proxy listens, as net.Dial takes it.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Accepted returns how many connections it has accepted so far.
func (p *Proxy) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// Close ends the proxy and its connections. It may be called again, and
// Lab.Close calls it.
func (p *Proxy) Close() error {
	p.lab.mu.Lock()
	_, open := p.lab.proxies[p]
	delete(p.lab.proxies, p)
	p.lab.mu.Unlock()
	if !open {
		return nil
	}
	return p.stop()
}

func (p *Proxy) stop() error {
	err := p.listener.Close()
	p.cancel()
	p.mu.Lock()
	p.closed = true
	for c := range p.open {
		c.Close()
	}
	p.mu.Unlock()
	p.wait.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.accepted++
		p.mu.Unlock()
		p.wait.Go(func() { p.forward(c) })
	}
}

// forward copies both ways until either side ends.
func (p *Proxy) forward(client net.Conn) {
	defer p.forget(client)
	if !p.remember(client) {
		return
	}
	server, err := (&net.Dialer{}).DialContext(p.ctx, "tcp", p.target)
	if err != nil {
		return
	}
	defer p.forget(server)
	if !p.remember(server) {
		return
	}
	var both sync.WaitGroup
	pipe := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		to.Close()
		from.Close()
	}
	both.Go(func() { pipe(server, client) })
	both.Go(func() { pipe(client, server) })
	both.Wait()
}

// remember reports false when the proxy is closed: nobody would close c then.
func (p *Proxy) remember(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.open[c] = struct{}{}
	return true
}

func (p *Proxy) forget(c net.Conn) {
	c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}
