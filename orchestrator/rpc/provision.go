package rpc

import (
	"context"

	"google.golang.org/grpc"

	"github.com/exocomp/exocomp/orchestrator"
	exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"
)

// Provisions serves exocomp_provision resources.
type Provisions interface {
	// EnsureRun calls send with each step of the way and returns when the run is
	// final, or the caller is deferred, or ctx ends. The last one sent is the
	// answer. [Client.EnsureRun] survives a restart.
	EnsureRun(ctx context.Context, e orchestrator.EnsureRun, send func(orchestrator.Ensured) error) error
	// EndProvision calls send with each step of the way and returns when the
	// resource has ended, or ctx has. [Client.EndProvision] survives a restart.
	EndProvision(ctx context.Context, e orchestrator.EndProvision, send func(orchestrator.ProvisionEnd) error) error
}

type provisionServer struct {
	exocompv1.UnimplementedProvisionServiceServer
	svc Provisions
}

func (s provisionServer) EnsureRun(req *exocompv1.EnsureRunRequest, stream grpc.ServerStreamingServer[exocompv1.EnsureRunResponse]) error {
	return s.svc.EnsureRun(stream.Context(), ensureRunFromWire(req), func(e orchestrator.Ensured) error {
		return stream.Send(ensuredToWire(e))
	})
}

func (s provisionServer) EndProvision(req *exocompv1.EndProvisionRequest, stream grpc.ServerStreamingServer[exocompv1.EndProvisionResponse]) error {
	return s.svc.EndProvision(stream.Context(), endProvisionFromWire(req), func(e orchestrator.ProvisionEnd) error {
		return stream.Send(provisionEndToWire(e))
	})
}

// EnsureRun implements [Provisions]. It outlives restarts of the daemon as
// [Client.Watch] does: it asks again, which never makes a second chain. The
// snapshots that the spec names must have been uploaded.
func (c *Client) EnsureRun(ctx context.Context, e orchestrator.EnsureRun, send func(orchestrator.Ensured) error) error {
	req := ensureRunToWire(e)
	return c.persist(ctx, func(connected func()) error {
		return receive(ctx, func(ctx context.Context) (grpc.ServerStreamingClient[exocompv1.EnsureRunResponse], error) {
			return c.stubs.provisions.EnsureRun(ctx, req)
		}, connected, func(m *exocompv1.EnsureRunResponse) error {
			return ofCaller(send(ensuredFromWire(m)))
		})
	})
}

// EndProvision implements [Provisions]. It outlives restarts of the daemon as
// [Client.Watch] does.
func (c *Client) EndProvision(ctx context.Context, e orchestrator.EndProvision, send func(orchestrator.ProvisionEnd) error) error {
	req := endProvisionToWire(e)
	return c.persist(ctx, func(connected func()) error {
		return receive(ctx, func(ctx context.Context) (grpc.ServerStreamingClient[exocompv1.EndProvisionResponse], error) {
			return c.stubs.provisions.EndProvision(ctx, req)
		}, connected, func(m *exocompv1.EndProvisionResponse) error {
			return ofCaller(send(provisionEndFromWire(m)))
		})
	})
}
