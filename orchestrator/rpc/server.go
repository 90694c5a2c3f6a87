package rpc

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"
)

// shutdownGrace is how long calls may take to end once the server stops.
// Streams are told at once; this is for what writes the ledger.
const shutdownGrace = 5 * time.Second

// ServerOptions configures a [Server].
type ServerOptions struct {
	Version string // the daemon's release
	Tokens  Tokens // from [EnsureTokens]
	Logger  *slog.Logger
	// Denied is told of every call that was refused for its token, or nil.
	// method is the gRPC method's full name.
	Denied func(ctx context.Context, method string, err error)
}

// Server offers a [Service] on a listener.
type Server struct {
	svc  Service
	opts ServerOptions
}

// NewServer returns a server for svc. It starts nothing.
func NewServer(svc Service, opts ServerOptions) *Server {
	return &Server{svc: svc, opts: opts}
}

// Serve answers on l until ctx ends, then closes l, ends the streams with
// [orchestrator.CodeUnavailable], waits briefly for the other calls and returns
// nil. A server serves once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	stdio := silence{done: make(chan struct{})}
	defer close(stdio.done)
	var server *grpc.Server
	p := &plugin.GRPCServer{
		Plugins: versionedPlugins(s.register)[ContractVersion],
		Stdout:  stdio,
		Stderr:  stdio,
		Server: func(opts []grpc.ServerOption) *grpc.Server {
			server = grpc.NewServer(append(opts,
				grpc.Creds(newPeerCredentials()),
				grpc.MaxRecvMsgSize(MaxMessage),
				grpc.MaxSendMsgSize(MaxMessage),
				grpc.UnaryInterceptor(s.unary),
				grpc.StreamInterceptor(s.stream(ctx)),
			)...)
			return server
		},
	}
	if err := p.Init(); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	defer p.Stop() // ends go-plugin's broker, too
	stopped := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		defer close(stopped)
		s.stop(server)
	})
	// Not p.Serve: it would panic over an error, for want of a logger.
	err := server.Serve(l)
	if !unhook() {
		<-stopped
		return nil
	}
	if err != nil {
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	}
	return nil
}

// stop lets the calls end, and ends those that take too long.
func (s *Server) stop(server *grpc.Server) {
	force := time.AfterFunc(shutdownGrace, func() {
		s.opts.Logger.Warn("calls still run, ending them", "after", shutdownGrace)
		server.Stop()
	})
	defer force.Stop()
	server.GracefulStop()
}

// register puts every service of the contract on r.
func (s *Server) register(r grpc.ServiceRegistrar) {
	exocompv1.RegisterDaemonServiceServer(r, daemonServer{svc: s.svc, version: s.opts.Version})
	exocompv1.RegisterWorkspaceServiceServer(r, workspaceServer{svc: s.svc})
	exocompv1.RegisterRunServiceServer(r, runServer{svc: s.svc})
	exocompv1.RegisterProvisionServiceServer(r, provisionServer{svc: s.svc})
	exocompv1.RegisterPlaybookServiceServer(r, playbookServer{svc: s.svc})
	exocompv1.RegisterJobServiceServer(r, jobServer{svc: s.svc})
	exocompv1.RegisterInventoryServiceServer(r, inventoryServer{svc: s.svc})
	exocompv1.RegisterHostServiceServer(r, hostServer{svc: s.svc})
	exocompv1.RegisterSnapshotServiceServer(r, snapshotServer{svc: s.svc})
	exocompv1.RegisterScheduleServiceServer(r, scheduleServer{svc: s.svc})
	exocompv1.RegisterEventServiceServer(r, eventServer{svc: s.svc})
}
