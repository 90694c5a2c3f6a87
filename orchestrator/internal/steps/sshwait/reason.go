package sshwait

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// reason is an error in plain words, with the one behind it.
type reason struct {
	text       string
	err        error
	connecting bool // the peer had not accepted yet
	unresolved bool // the name has no address
}

func (r *reason) Error() string { return r.text }

func (r *reason) Unwrap() error { return r.err }

func plain(text string, err error) error { return &reason{text: text, err: err} }

func isConnecting(err error) bool {
	var r *reason
	return errors.As(err, &r) && r.connecting
}

func unresolved(err error) bool {
	var r *reason
	return errors.As(err, &r) && r.unresolved
}

// connectError says why ctx's dial gave no connection.
func connectError(ctx context.Context, err error) error {
	r := &reason{err: err, connecting: true}
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		r.text = "connection refused"
	case errors.Is(err, syscall.EHOSTUNREACH):
		r.text = "no route to host"
	case errors.Is(err, syscall.ENETUNREACH):
		r.text = "network is unreachable"
	case errors.Is(err, syscall.ECONNRESET):
		r.text = "connection reset while connecting"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		r.text = "out of file descriptors on this machine"
	case errors.As(err, &dns) && ctx.Err() == nil:
		r.unresolved = true
		r.text = "no such host name: " + dns.Name
		if !dns.IsNotFound {
			r.text = fmt.Sprintf("look up %s: %s", dns.Name, dns.Err)
		}
	case ctx.Err() != nil, timedOut(err):
		r.text = "timed out connecting"
	case errors.As(err, &op):
		r.text = "connect: " + op.Err.Error()
	default:
		r.text = "connect: " + err.Error()
	}
	return r
}

// bannerError says why a connection gave no banner after total bytes.
func bannerError(err error, total int) error {
	var what string
	switch {
	case timedOut(err) && total == 0:
		what = "connected, but nothing came"
	case timedOut(err):
		what = "connected, but no whole banner came"
	case errors.Is(err, io.EOF) && total == 0:
		what = "the peer closed the connection at once"
	case errors.Is(err, io.EOF):
		what = "the peer closed the connection without one"
	case errors.Is(err, syscall.ECONNRESET):
		what = "the peer reset the connection"
	default:
		what = err.Error()
	}
	return plain("banner: "+what, err)
}

func timedOut(err error) bool {
	var n net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) || (errors.As(err, &n) && n.Timeout())
}
