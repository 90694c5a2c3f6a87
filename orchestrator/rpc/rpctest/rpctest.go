// Package rpctest serves the contract in tests: a [Service] that keeps
// everything in memory and does no work, and a real server for it on a socket.
package rpctest

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// Version is the release that the served daemon says it is.
const Version = "v0.0.0-test"

// Daemon is a server that a test may stop and start again on the same socket.
type Daemon struct {
	Socket string
	t      testing.TB
	svc    rpc.Service
	opts   rpc.ServerOptions

	mu   sync.Mutex
	stop func()
}

// Serve starts a daemon for svc in a directory of its own, with tokens beside
// the socket. It ends with the test.
func Serve(t testing.TB, svc rpc.Service) *Daemon {
	t.Helper()
	// Not t.TempDir: it holds the test's name, and a socket's path is short.
	dir, err := os.MkdirTemp("", "rpctest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	tokens, err := rpc.EnsureTokens(dir)
	if err != nil {
		t.Fatal(err)
	}
	d := &Daemon{
		Socket: filepath.Join(dir, rpc.SocketName),
		t:      t,
		svc:    svc,
		opts:   rpc.ServerOptions{Version: Version, Tokens: tokens, Logger: slog.New(slog.DiscardHandler)},
		stop:   func() {},
	}
	d.Start()
	t.Cleanup(d.Stop)
	return d
}

// Start listens and serves.
func (d *Daemon) Start() {
	d.t.Helper()
	l, err := rpc.Listen(d.Socket, rpc.ListenOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	d.StartOn(l)
}

// StartOn serves on l.
func (d *Daemon) StartOn(l net.Listener) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- rpc.NewServer(d.svc, d.opts).Serve(ctx, l) }()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			d.t.Errorf("serve: %v", err)
		}
	})
}

// Stop ends the server in order and waits for it. It may be called again.
func (d *Daemon) Stop() {
	d.mu.Lock()
	stop := d.stop
	d.mu.Unlock()
	stop()
}

// TokenFile returns the file of a role's token.
func (d *Daemon) TokenFile(role rpc.Role) string {
	return filepath.Join(filepath.Dir(d.Socket), string(role)+".token")
}

// Dial attaches a client with the operator's token. It is closed with the test.
func (d *Daemon) Dial() *rpc.Client {
	d.t.Helper()
	return d.DialAs(rpc.RoleOperator)
}

// DialAs attaches a client with a role's token. It is closed with the test.
func (d *Daemon) DialAs(role rpc.Role) *rpc.Client {
	d.t.Helper()
	c, err := rpc.Dial(context.Background(), rpc.ClientOptions{
		Socket: d.Socket, TokenFile: d.TokenFile(role), Version: Version,
	})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = c.Close() })
	return c
}
