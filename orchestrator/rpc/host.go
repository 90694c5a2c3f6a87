package rpc

import (
	"context"

	"github.com/exocomp/exocomp/orchestrator"
	exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"
)

// Hosts is about host keys and onboarding. A host ref is `workspace/host`, or
// a host name that is unique among the inventories.
type Hosts interface {
	// ListPins answers by address and port.
	ListPins(ctx context.Context, filter orchestrator.PinFilter) ([]orchestrator.Pin, error)
	// ForgetHost answers the pin as it was retired.
	ForgetHost(ctx context.Context, ref string) (orchestrator.Pin, error)
	OnboardHosts(ctx context.Context, key string, spec OnboardSpec) (orchestrator.Job, error)
	// GetFleetKey answers an OpenSSH public key line.
	GetFleetKey(ctx context.Context) (string, error)
	GetOnboardVars(ctx context.Context, ref string) (OnboardVars, error)
}

// OnboardSpec is what a person asked for.
type OnboardSpec struct {
	Hosts         []string // host refs, all of one workspace
	Rotate        bool     // replace changed pins
	SSHIdentities []string // absolute paths on the daemon's host
}

// OnboardVars is how to onboard one host by hand.
type OnboardVars struct {
	JSON    string   `json:"json"`    // extra variables, a JSON object
	Command []string `json:"command"` // the arguments of the ansible-playbook call, its name first
}

type hostServer struct {
	exocompv1.UnimplementedHostServiceServer
	svc Hosts
}

func (s hostServer) ListPins(ctx context.Context, req *exocompv1.ListPinsRequest) (*exocompv1.ListPinsResponse, error) {
	ps, err := s.svc.ListPins(ctx, pinFilterFromWire(req))
	if err != nil {
		return nil, err
	}
	return &exocompv1.ListPinsResponse{Pins: convert(ps, pinToWire)}, nil
}

func (s hostServer) ForgetHost(ctx context.Context, req *exocompv1.ForgetHostRequest) (*exocompv1.ForgetHostResponse, error) {
	p, err := s.svc.ForgetHost(ctx, req.GetRef())
	if err != nil {
		return nil, err
	}
	return &exocompv1.ForgetHostResponse{Pin: pinToWire(p)}, nil
}

func (s hostServer) OnboardHosts(ctx context.Context, req *exocompv1.OnboardHostsRequest) (*exocompv1.OnboardHostsResponse, error) {
	if err := requireKey(req.GetKey()); err != nil {
		return nil, err
	}
	j, err := s.svc.OnboardHosts(ctx, req.GetKey(), onboardSpecFromWire(req.GetSpec()))
	if err != nil {
		return nil, err
	}
	return &exocompv1.OnboardHostsResponse{Job: jobToWire(j)}, nil
}

func (s hostServer) GetFleetKey(ctx context.Context, _ *exocompv1.GetFleetKeyRequest) (*exocompv1.GetFleetKeyResponse, error) {
	k, err := s.svc.GetFleetKey(ctx)
	if err != nil {
		return nil, err
	}
	return &exocompv1.GetFleetKeyResponse{PublicKey: k}, nil
}

func (s hostServer) GetOnboardVars(ctx context.Context, req *exocompv1.GetOnboardVarsRequest) (*exocompv1.GetOnboardVarsResponse, error) {
	v, err := s.svc.GetOnboardVars(ctx, req.GetRef())
	if err != nil {
		return nil, err
	}
	return &exocompv1.GetOnboardVarsResponse{Vars: onboardVarsToWire(v)}, nil
}

// ListPins implements [Hosts].
func (c *Client) ListPins(ctx context.Context, filter orchestrator.PinFilter) ([]orchestrator.Pin, error) {
	resp, err := c.stubs.hosts.ListPins(ctx, pinFilterToWire(filter))
	return convert(resp.GetPins(), pinFromWire), err
}

// ForgetHost implements [Hosts].
func (c *Client) ForgetHost(ctx context.Context, ref string) (orchestrator.Pin, error) {
	resp, err := c.stubs.hosts.ForgetHost(ctx, &exocompv1.ForgetHostRequest{Ref: ref})
	return pinFromWire(resp.GetPin()), err
}

// OnboardHosts implements [Hosts].
func (c *Client) OnboardHosts(ctx context.Context, key string, spec OnboardSpec) (orchestrator.Job, error) {
	req := &exocompv1.OnboardHostsRequest{Key: keyOr(key), Spec: onboardSpecToWire(spec)}
	resp, err := submit(ctx, c, c.stubs.hosts.OnboardHosts, req)
	return jobFromWire(resp.GetJob()), err
}

// GetFleetKey implements [Hosts].
func (c *Client) GetFleetKey(ctx context.Context) (string, error) {
	resp, err := c.stubs.hosts.GetFleetKey(ctx, &exocompv1.GetFleetKeyRequest{})
	return resp.GetPublicKey(), err
}

// GetOnboardVars implements [Hosts].
func (c *Client) GetOnboardVars(ctx context.Context, ref string) (OnboardVars, error) {
	resp, err := c.stubs.hosts.GetOnboardVars(ctx, &exocompv1.GetOnboardVarsRequest{Ref: ref})
	return onboardVarsFromWire(resp.GetVars()), err
}
