package hostkeys

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/errgroup"

	"github.com/exocomp/exocomp/orchestrator"
)

const (
	// clientVersion is how a scan names itself in sshd's log.
	clientVersion = "SSH-2.0-exocomp"
	// DefaultConcurrency is how many hosts are scanned at once.
	DefaultConcurrency = 128
	// DefaultTimeout bounds one host's scan, from the dial to its key.
	DefaultTimeout = 10 * time.Second
)

// preferred is the order in which a key is asked for where none is pinned. SHA-1
// signatures (`ssh-rsa`, RFC 4253) are not accepted: OpenSSH has none since 8.8.
var preferred = []string{
	ssh.KeyAlgoED25519,
	ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
	ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256,
}

// Target is one server to scan.
type Target struct {
	Host  string // IPv6 without brackets
	Port  int
	Types []string // key types to ask for, in this order; nil: ed25519, ecdsa, rsa
}

// Result is what a target answered: a key, of which it has shown that it holds
// the private half, or an error.
type Result struct {
	Target Target
	Key    ssh.PublicKey
	Err    error // an [*orchestrator.Error]; [ErrNotOffered] where the types are not offered
}

// Options bound a scan; zero values are the defaults.
type Options struct {
	Concurrency int
	Timeout     time.Duration // for each target
	Dial        func(ctx context.Context, network, address string) (net.Conn, error)
}

// ErrNotOffered is in the chain of a [Result]'s error where the server answered
// and has no key of the types that were asked for.
var ErrNotOffered = errors.New("no host key of these types is offered")

// Scan asks every target for its key, all at once up to the bound, and answers
// in their order. It makes one connection for each, and one key exchange: a
// server that counts connections without a login (OpenSSH ≥ 9.8,
// PerSourcePenalties) counts one.
func Scan(ctx context.Context, targets []Target, o Options) []Result {
	if o.Concurrency <= 0 {
		o.Concurrency = DefaultConcurrency
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	results := make([]Result, len(targets))
	var g errgroup.Group
	g.SetLimit(o.Concurrency)
	for i, t := range targets {
		g.Go(func() error {
			key, err := scan(ctx, t, o)
			results[i] = Result{Target: t, Key: key, Err: err}
			return nil
		})
	}
	_ = g.Wait() // every error is in its result
	return results
}

// errSeen ends a key exchange once the key is known, before any login.
var errSeen = errors.New("host key seen")

func scan(ctx context.Context, t Target, o Options) (ssh.PublicKey, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	address := orchestrator.DialAddress(t.Host, t.Port)
	conn, err := o.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, scanError(ctx, t, o, err)
	}
	defer func() { _ = conn.Close() }()
	// ClientConfig.Timeout covers only a dial: the context ends a silent peer.
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()

	var key ssh.PublicKey
	_, _, _, err = ssh.NewClientConn(conn, address, &ssh.ClientConfig{
		ClientVersion:     clientVersion,
		HostKeyAlgorithms: algorithms(t.Types),
		HostKeyCallback: func(_ string, _ net.Addr, k ssh.PublicKey) error {
			key = k
			return errSeen
		},
	})
	if key != nil {
		return key, nil
	}
	return nil, scanError(ctx, t, o, err)
}

// algorithms returns the signature algorithms that prove keys of types.
func algorithms(types []string) []string {
	if len(types) == 0 {
		return preferred
	}
	var out []string
	for _, t := range types {
		if t == ssh.KeyAlgoRSA {
			out = append(out, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
			continue
		}
		out = append(out, t)
	}
	return out
}

// scanError says in one sentence why t gave no key.
func scanError(ctx context.Context, t Target, o Options, err error) error {
	name := orchestrator.DialAddress(t.Host, t.Port)
	var negotiation *ssh.AlgorithmNegotiationError
	var op *net.OpError
	switch {
	case errors.As(err, &negotiation) && negotiation.What == "host key":
		e := orchestrator.Errorf(orchestrator.CodeRefused, "%s offers %q, not %q", name,
			negotiation.RequestedAlgorithms, negotiation.SupportedAlgorithms)
		e.Err = ErrNotOffered
		return e
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return orchestrator.Errorf(orchestrator.CodeFailed, "%s gave no host key within %s", name, o.Timeout)
	case ctx.Err() != nil:
		return orchestrator.Errorf(orchestrator.CodeCancelled, "scan %s: %w", name, ctx.Err())
	// A library that read the peer's end has closed our side of it by the time it
	// writes; the context, which closes it too, is ruled out above.
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return orchestrator.Errorf(orchestrator.CodeFailed, "%s gave no host key: it closed the connection", name)
	case errors.As(err, &op):
		return orchestrator.Errorf(orchestrator.CodeFailed, "%s gave no host key: %w", name, op.Err)
	default:
		return orchestrator.Errorf(orchestrator.CodeFailed, "%s gave no host key: %w", name, err)
	}
}
