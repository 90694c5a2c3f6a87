package rpc

import (
	"context"
	"time"

	exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"
)

// Daemon is about the daemon itself.
type Daemon interface {
	GetStatus(ctx context.Context) (Status, error)
	// Drain starts a drain, or ends one with off. It returns before the work
	// has ended; [Client.WaitDrained] waits.
	Drain(ctx context.Context, off bool) (Status, error)
}

// Status is how the daemon fares.
type Status struct {
	Version   string    `json:"version"`
	StartedAt time.Time `json:"started_at,omitzero"`
	DataDir   string    `json:"data_dir"`
	// ConfigFile is the settings file that the daemon has read, or empty.
	ConfigFile string   `json:"config_file,omitempty"`
	Draining   bool     `json:"draining"`
	Workers    int      `json:"workers"`    // jobs that may run at once
	Running    int      `json:"running"`    // jobs that run now
	Queued     int      `json:"queued"`     // jobs that wait for a worker, a turn or the end of a drain
	LastEvent  int64    `json:"last_event"` // id of the newest event
	Tools      []Tool   `json:"tools,omitempty"`
	Warnings   []string `json:"warnings,omitempty"` // one line each, with what to do about it
}

// Tool is a program that the daemon runs, as it was found.
type Tool struct {
	Name    string `json:"name"` // tofu, ansible-playbook
	Path    string `json:"path,omitempty"`
	Version string `json:"version,omitempty"`
	Error   string `json:"error,omitempty"` // why it cannot be used; empty where it can
	Hint    string `json:"hint,omitempty"`  // what to do about the error, or empty
}

type daemonServer struct {
	exocompv1.UnimplementedDaemonServiceServer
	svc     Daemon
	version string
}

func (s daemonServer) Handshake(ctx context.Context, req *exocompv1.HandshakeRequest) (*exocompv1.HandshakeResponse, error) {
	client := Release{Contract: int(req.GetContract()), Version: req.GetVersion()}
	daemon := Release{Contract: ContractVersion, Version: s.version}
	if err := compareReleases(client, daemon); err != nil {
		return nil, err
	}
	return &exocompv1.HandshakeResponse{
		Contract: ContractVersion, Version: s.version, Role: roles.wire(roleFrom(ctx)),
	}, nil
}

func (s daemonServer) GetStatus(ctx context.Context, _ *exocompv1.GetStatusRequest) (*exocompv1.GetStatusResponse, error) {
	st, err := s.svc.GetStatus(ctx)
	if err != nil {
		return nil, err
	}
	return &exocompv1.GetStatusResponse{Status: statusToWire(st)}, nil
}

func (s daemonServer) Drain(ctx context.Context, req *exocompv1.DrainRequest) (*exocompv1.DrainResponse, error) {
	st, err := s.svc.Drain(ctx, req.GetOff())
	if err != nil {
		return nil, err
	}
	return &exocompv1.DrainResponse{Status: statusToWire(st)}, nil
}

// GetStatus implements [Daemon].
func (c *Client) GetStatus(ctx context.Context) (Status, error) {
	resp, err := c.stubs.daemon.GetStatus(ctx, &exocompv1.GetStatusRequest{})
	return statusFromWire(resp.GetStatus()), err
}

// Drain implements [Daemon].
func (c *Client) Drain(ctx context.Context, off bool) (Status, error) {
	resp, err := c.stubs.daemon.Drain(ctx, &exocompv1.DrainRequest{Off: off})
	return statusFromWire(resp.GetStatus()), err
}
