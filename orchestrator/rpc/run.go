package rpc

import (
	"cmp"
	"context"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"
)

// Runs submits chains and follows them. A ref is a run's id, or a workspace's
// name for its newest run.
type Runs interface {
	SubmitRun(ctx context.Context, key string, kind orchestrator.RunKind, workspace string, spec orchestrator.RunSpec) (orchestrator.Run, error)
	GetRun(ctx context.Context, ref string) (orchestrator.Run, error)
	// ListRuns answers the newest first.
	ListRuns(ctx context.Context, filter orchestrator.RunFilter) ([]orchestrator.Run, error)
	ResumeRun(ctx context.Context, ref string, spec ResumeSpec) (orchestrator.Run, error)
	// CancelRun returns before the run has ended; force does not wait until
	// tofu has saved its state.
	CancelRun(ctx context.Context, ref string, force bool) (orchestrator.Run, error)
}

// ResumeSpec is what a resume changes of the run's spec; a zero field keeps
// what the run has.
type ResumeSpec struct {
	Playbook        *orchestrator.PlaybookRef
	OnboardPlaybook *orchestrator.PlaybookRef
	SSHWait         time.Duration
	Egress          []int
	SSHIdentities   []string // absolute paths on the daemon's host
	AcceptLost      bool
	Args            []string // passed to ansible-playbook in the last step

	From       orchestrator.StepKind // the first step that a new run does itself; empty: the run itself goes on
	FailedOnly bool                  // leave out the hosts for which the failed step has done its work
}

type runServer struct {
	exocompv1.UnimplementedRunServiceServer
	svc Runs
}

func (s runServer) SubmitRun(ctx context.Context, req *exocompv1.SubmitRunRequest) (*exocompv1.SubmitRunResponse, error) {
	if err := requireKey(req.GetKey()); err != nil {
		return nil, err
	}
	kind := cmp.Or(runKinds.domain(req.GetKind()), orchestrator.RunProvision)
	r, err := s.svc.SubmitRun(ctx, req.GetKey(), kind, req.GetWorkspace(), runSpecFromWire(req.GetSpec()))
	if err != nil {
		return nil, err
	}
	return &exocompv1.SubmitRunResponse{Run: runToWire(r)}, nil
}

func (s runServer) GetRun(ctx context.Context, req *exocompv1.GetRunRequest) (*exocompv1.GetRunResponse, error) {
	r, err := s.svc.GetRun(ctx, req.GetRef())
	if err != nil {
		return nil, err
	}
	return &exocompv1.GetRunResponse{Run: runToWire(r)}, nil
}

func (s runServer) ListRuns(ctx context.Context, req *exocompv1.ListRunsRequest) (*exocompv1.ListRunsResponse, error) {
	rs, err := s.svc.ListRuns(ctx, runFilterFromWire(req))
	if err != nil {
		return nil, err
	}
	return &exocompv1.ListRunsResponse{Runs: convert(rs, runToWire)}, nil
}

func (s runServer) ResumeRun(ctx context.Context, req *exocompv1.ResumeRunRequest) (*exocompv1.ResumeRunResponse, error) {
	r, err := s.svc.ResumeRun(ctx, req.GetRef(), resumeSpecFromWire(req.GetSpec()))
	if err != nil {
		return nil, err
	}
	return &exocompv1.ResumeRunResponse{Run: runToWire(r)}, nil
}

func (s runServer) CancelRun(ctx context.Context, req *exocompv1.CancelRunRequest) (*exocompv1.CancelRunResponse, error) {
	r, err := s.svc.CancelRun(ctx, req.GetRef(), req.GetForce())
	if err != nil {
		return nil, err
	}
	return &exocompv1.CancelRunResponse{Run: runToWire(r)}, nil
}

// SubmitRun implements [Runs].
func (c *Client) SubmitRun(ctx context.Context, key string, kind orchestrator.RunKind, workspace string, spec orchestrator.RunSpec) (orchestrator.Run, error) {
	req := &exocompv1.SubmitRunRequest{Key: keyOr(key), Kind: runKinds.wire(kind), Workspace: workspace, Spec: runSpecToWire(spec)}
	resp, err := submit(ctx, c, c.stubs.runs.SubmitRun, req)
	return runFromWire(resp.GetRun()), err
}

// GetRun implements [Runs].
func (c *Client) GetRun(ctx context.Context, ref string) (orchestrator.Run, error) {
	resp, err := c.stubs.runs.GetRun(ctx, &exocompv1.GetRunRequest{Ref: ref})
	return runFromWire(resp.GetRun()), err
}

// ListRuns implements [Runs].
func (c *Client) ListRuns(ctx context.Context, filter orchestrator.RunFilter) ([]orchestrator.Run, error) {
	resp, err := c.stubs.runs.ListRuns(ctx, runFilterToWire(filter))
	return convert(resp.GetRuns(), runFromWire), err
}

// ResumeRun implements [Runs].
func (c *Client) ResumeRun(ctx context.Context, ref string, spec ResumeSpec) (orchestrator.Run, error) {
	resp, err := c.stubs.runs.ResumeRun(ctx, &exocompv1.ResumeRunRequest{Ref: ref, Spec: resumeSpecToWire(spec)})
	return runFromWire(resp.GetRun()), err
}

// CancelRun implements [Runs].
func (c *Client) CancelRun(ctx context.Context, ref string, force bool) (orchestrator.Run, error) {
	resp, err := c.stubs.runs.CancelRun(ctx, &exocompv1.CancelRunRequest{Ref: ref, Force: force})
	return runFromWire(resp.GetRun()), err
}
