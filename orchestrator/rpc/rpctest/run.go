package rpctest

import (
	"context"
	"slices"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// SubmitRun implements [rpc.Runs]. The run stays queued.
func (s *Service) SubmitRun(ctx context.Context, key string, kind orchestrator.RunKind, workspace string, spec orchestrator.RunSpec) (orchestrator.Run, error) {
	if err := spec.Validate(kind); err != nil {
		return orchestrator.Run{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.workspaces[workspace]; !ok {
		return orchestrator.Run{}, notFound("workspace", workspace)
	}
	id, fresh, err := s.once(ctx, key, "run", []any{kind, workspace, spec})
	if err != nil {
		return orchestrator.Run{}, err
	}
	if fresh {
		r := orchestrator.Run{
			ID: orchestrator.RunID(id), Kind: kind, Workspace: workspace,
			State: orchestrator.RunQueued, Spec: spec, SubmittedBy: s.peer, CreatedAt: time.Now().UTC(),
		}
		for i, k := range r.Kind.Steps() {
			r.Steps = append(r.Steps, orchestrator.Step{
				Seq: i + 1, Kind: k, State: orchestrator.StepBlocked, Origin: orchestrator.OriginRun,
			})
		}
		s.runs = append(s.runs, r)
		s.emit(orchestrator.Event{Kind: orchestrator.EventRunSubmitted, Workspace: workspace, Run: r.ID})
	}
	r, err := s.run(id)
	if err != nil {
		return orchestrator.Run{}, err
	}
	return *r, nil
}

// run returns the run of an id, or a workspace's newest.
func (s *Service) run(ref string) (*orchestrator.Run, error) {
	for i := range slices.Backward(s.runs) {
		if r := &s.runs[i]; string(r.ID) == ref || r.Workspace == ref {
			return r, nil
		}
	}
	return nil, notFound("run", ref)
}

// SetRun changes a run and tells of it: as finished where its state is final.
func (s *Service) SetRun(ref string, change func(*orchestrator.Run)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.run(ref)
	if err != nil {
		return err
	}
	r.Steps = slices.Clone(r.Steps)
	change(r)
	kind := orchestrator.EventStepStarted
	if r.State.Final() {
		kind, r.FinishedAt = orchestrator.EventRunFinished, time.Now().UTC()
	}
	s.emit(orchestrator.Event{Kind: kind, Workspace: r.Workspace, Run: r.ID, State: string(r.State)})
	return nil
}

// GetRun implements [rpc.Runs].
func (s *Service) GetRun(_ context.Context, ref string) (orchestrator.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.run(ref)
	if err != nil {
		return orchestrator.Run{}, err
	}
	return *r, nil
}

// ListRuns implements [rpc.Runs].
func (s *Service) ListRuns(_ context.Context, f orchestrator.RunFilter) ([]orchestrator.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []orchestrator.Run
	for _, r := range slices.Backward(s.runs) {
		if (f.Workspace == "" || f.Workspace == r.Workspace) &&
			(f.State == "" || f.State == r.State) &&
			(f.Before == "" || r.ID < f.Before) &&
			(f.Limit == 0 || len(list) < f.Limit) {
			list = append(list, r)
		}
	}
	return list, nil
}

// ResumeRun implements [rpc.Runs].
func (s *Service) ResumeRun(_ context.Context, ref string, spec rpc.ResumeSpec) (orchestrator.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.run(ref)
	if err != nil {
		return orchestrator.Run{}, err
	}
	if r.State != orchestrator.RunFailed {
		return orchestrator.Run{}, orchestrator.Errorf(orchestrator.CodeConflict, "run %s is %s, not failed", r.ID, r.State)
	}
	if spec.Playbook != nil {
		r.Spec.Playbook = *spec.Playbook
	}
	if spec.OnboardPlaybook != nil {
		r.Spec.OnboardPlaybook = spec.OnboardPlaybook
	}
	if spec.SSHWait != 0 {
		r.Spec.SSHWait = spec.SSHWait
	}
	r.State, r.FinishedAt = orchestrator.RunRunning, time.Time{}
	s.emit(orchestrator.Event{Kind: orchestrator.EventRunResumed, Workspace: r.Workspace, Run: r.ID})
	return *r, nil
}

// CancelRun implements [rpc.Runs]. The run is cancelled at once.
func (s *Service) CancelRun(ctx context.Context, ref string, _ bool) (orchestrator.Run, error) {
	r, err := s.GetRun(ctx, ref)
	if err != nil {
		return orchestrator.Run{}, err
	}
	if r.State.Final() {
		return orchestrator.Run{}, orchestrator.Errorf(orchestrator.CodeConflict, "run %s is already %s", r.ID, r.State)
	}
	if err := s.SetRun(string(r.ID), func(r *orchestrator.Run) { r.State = orchestrator.RunCancelled }); err != nil {
		return orchestrator.Run{}, err
	}
	return s.GetRun(ctx, string(r.ID))
}
