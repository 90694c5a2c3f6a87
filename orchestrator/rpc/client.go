package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/exocomp/exocomp/orchestrator"
	exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"
)

// handshakeTimeout bounds the first call. A daemon answers it in milliseconds,
// unless its host is very busy.
const handshakeTimeout = 20 * time.Second

// DefaultReconnectTimeout is how long waiting calls and submits outlive a
// daemon that is away, unless [ClientOptions] say otherwise.
const DefaultReconnectTimeout = 2 * time.Minute

// ClientOptions says which daemon to call.
type ClientOptions struct {
	// Socket is the daemon's; empty: $EXOCOMP_SOCKET, the user's daemon if it
	// has one, the system's.
	Socket string
	// TokenFile holds the token; empty: $EXOCOMP_TOKEN_FILE, operator.token
	// beside the socket, reader.token.
	TokenFile string
	// Version is the client's release.
	Version string
	// ReconnectTimeout bounds one absence of the daemon; zero:
	// [DefaultReconnectTimeout].
	ReconnectTimeout time.Duration
}

// Client calls a daemon. It implements [Service], and is safe for concurrent
// use. Errors are *orchestrator.Error, but for those of a caller's own function
// or reader, which come back as they are.
type Client struct {
	opts   ClientOptions
	stubs  *stubs
	daemon Release
	role   Role
	close  func() error
}

var _ Service = (*Client)(nil)

// Dial attaches to the daemon and shakes hands. It starts no daemon: where none
// answers the error is [orchestrator.CodeUnavailable], without a token that the
// daemon knows [orchestrator.CodeUnauthenticated], and where the two speak
// different contracts [orchestrator.CodeRefused]. The caller closes the client.
func Dial(ctx context.Context, opts ClientOptions) (*Client, error) {
	socket, looked := lookupSocket(opts.Socket)
	if err := probe(ctx, socket, looked); err != nil {
		return nil, err
	}
	token, tokenFile, err := lookupToken(opts.TokenFile, socket)
	if err != nil {
		return nil, err
	}
	if opts.ReconnectTimeout == 0 {
		opts.ReconnectTimeout = DefaultReconnectTimeout
	}
	c := &Client{opts: opts}
	if err := c.attach(socket, token); err != nil {
		return nil, fmt.Errorf("attach to the daemon: %w", err)
	}
	if err := c.handshake(ctx, socket, tokenFile); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// attach makes the go-plugin client. Nothing is sent yet.
func (c *Client) attach(socket string, token orchestrator.Secret) error {
	attached := attachment{done: make(chan struct{})}
	plugins := versionedPlugins(nil)
	p := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  handshakeConfig,
		VersionedPlugins: plugins,
		Plugins:          plugins[ContractVersion],
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Logger:           hclog.NewNullLogger(),
		Reattach: &plugin.ReattachConfig{
			Protocol:        plugin.ProtocolGRPC,
			ProtocolVersion: ContractVersion,
			Addr:            &net.UnixAddr{Net: "unix", Name: socket},
			ReattachFunc:    func() (runner.AttachedRunner, error) { return attached, nil },
			// Not a test: it is how go-plugin says that the server is not
			// the client's to kill.
			Test: true,
		},
		GRPCDialOptions: []grpc.DialOption{
			grpc.WithPerRPCCredentials(bearer{token}),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage)),
			grpc.WithUnaryInterceptor(clientUnary),
			grpc.WithStreamInterceptor(clientStream),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: minDelay, Multiplier: 2, Jitter: 0.2, MaxDelay: maxDelay},
				MinConnectTimeout: handshakeTimeout,
			}),
		},
	})
	protocol, err := p.Client()
	if err != nil {
		close(attached.done)
		return err
	}
	c.close = sync.OnceValue(func() error {
		defer close(attached.done)
		return protocol.Close()
	})
	raw, err := protocol.Dispense(pluginName)
	if err != nil {
		_ = c.close()
		return err
	}
	c.stubs = raw.(*stubs)
	return nil
}

// handshake is the first call: it compares contracts and learns the role.
func (c *Client) handshake(ctx context.Context, socket, tokenFile string) error {
	hctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	resp, err := c.stubs.daemon.Handshake(hctx, &exocompv1.HandshakeRequest{
		Contract: ContractVersion, Version: c.opts.Version,
	})
	var e *orchestrator.Error
	switch {
	case err != nil && ctx.Err() == nil && hctx.Err() != nil:
		return orchestrator.Errorf(orchestrator.CodeUnavailable, "the daemon on %s does not answer", socket).
			WithHint("see what it does, or restart it")
	case errors.Is(err, orchestrator.ErrUnauthenticated):
		return orchestrator.Errorf(orchestrator.CodeUnauthenticated,
			"the daemon on %s does not know the token in %s", socket, tokenFile).
			WithHint("name the token file of that daemon: --token-file FILE or %s=FILE", TokenFileEnv)
	case errors.As(err, &e):
		return e.WithOp("shake hands with the daemon")
	case err != nil:
		return err
	}
	c.daemon = Release{Contract: int(resp.GetContract()), Version: resp.GetVersion()}
	c.role = roles.domain(resp.GetRole())
	return compareReleases(Release{Contract: ContractVersion, Version: c.opts.Version}, c.daemon)
}

// Daemon returns what the daemon said of itself in the handshake.
func (c *Client) Daemon() Release { return c.daemon }

// Role returns what the client's token may do.
func (c *Client) Role() Role { return c.role }

// Close detaches. The daemon goes on. It may be called again.
func (c *Client) Close() error { return c.close() }

// Release is one end of the contract.
type Release struct {
	Contract int    // the contract it speaks
	Version  string // the release it is
}

// compareReleases returns a sentence where the two cannot talk.
func compareReleases(client, daemon Release) error {
	if client.Contract == daemon.Contract {
		return nil
	}
	return orchestrator.Errorf(orchestrator.CodeRefused,
		"this client (exocomp %s) speaks version %d of the contract, the daemon (exocomp %s) version %d",
		client.Version, client.Contract, daemon.Version, daemon.Contract).
		WithHint("install the same release on both ends, then restart the daemon")
}

// offered reports whether a client calls method over the wire. The rest is
// go-plugin's own business with a child, which the daemon is not.
func offered(method string) bool {
	return strings.HasPrefix(method, "/exocomp.") || strings.HasPrefix(method, "/grpc.health.")
}

// clientUnary maps errors, and keeps go-plugin's Shutdown to ourselves.
func clientUnary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if !offered(method) {
		return status.Errorf(codes.Unimplemented, "%s is not offered", method)
	}
	return domainError(ctx, invoke(ctx, method, req, reply, cc, opts...))
}

// clientStream keeps go-plugin's broker and stdio streams to ourselves.
func clientStream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if !offered(method) {
		return nil, status.Errorf(codes.Unimplemented, "%s is not offered", method)
	}
	return open(ctx, desc, cc, method, opts...)
}
