package secrets

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/sys/unix"
)

// acceptPause is how long Serve rests when the process is out of descriptors.
const acceptPause = 50 * time.Millisecond

// Serve answers agent requests on ln, a unix socket, until ctx ends; then it
// closes ln and every connection, waits for their goroutines and returns nil.
// Another error of the listener ends it the same way and is returned.
//
// Each connection is answered only if allow says so for the process at its
// other end (SO_PEERCRED, unix(7): the one that connected); others are closed
// unanswered. allow may be called by several goroutines at once.
func (a *Agent) Serve(ctx context.Context, ln net.Listener, allow func(pid int) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	var conns sync.WaitGroup
	defer conns.Wait()
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = ln.Close() })()

	for {
		conn, err := ln.Accept()
		switch {
		case err == nil:
			conns.Go(func() { a.serveConn(ctx, conn, allow) })
		case ctx.Err() != nil:
			return nil
		case outOfDescriptors(err):
			select {
			case <-ctx.Done():
			case <-time.After(acceptPause):
			}
		default:
			_ = ln.Close()
			return fmt.Errorf("accept on the agent socket: %w", err)
		}
	}
}

func (a *Agent) serveConn(ctx context.Context, conn net.Conn, allow func(pid int) bool) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer func() { _ = conn.Close() }()
	if pid, err := peerPID(conn); err != nil || !allow(pid) {
		return
	}
	// It ends with the peer's close, and there is nobody to tell why.
	_ = agent.ServeAgent(a.keys, conn)
}

// peerPID returns the process that connected; its id is meaningful in the
// caller's pid namespace and may have been given away since.
func peerPID(conn net.Conn) (int, error) {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return 0, errors.New("read peer credentials: not a socket")
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("read peer credentials: %w", err)
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, credErr); err != nil {
		return 0, fmt.Errorf("read peer credentials: %w", err)
	}
	return int(cred.Pid), nil
}

func outOfDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED)
}
