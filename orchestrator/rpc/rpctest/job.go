package rpctest

import (
	"context"
	"slices"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// queue adds a standalone job. It stays queued.
func (s *Service) queue(ctx context.Context, key string, j orchestrator.Job) (orchestrator.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.workspaces[j.Workspace]; !ok {
		return orchestrator.Job{}, notFound("workspace", j.Workspace)
	}
	id, fresh, err := s.once(ctx, key, "job", []any{j.Kind, j.Workspace, j.Spec})
	if err != nil {
		return orchestrator.Job{}, err
	}
	if fresh {
		s.add(id, j)
	}
	got, err := s.job(orchestrator.JobID(id))
	if err != nil {
		return orchestrator.Job{}, err
	}
	return *got, nil
}

func (s *Service) add(id string, j orchestrator.Job) {
	j.ID, j.State = orchestrator.JobID(id), orchestrator.JobQueued
	j.Attempt.Number++
	j.SubmittedBy, j.CreatedAt = s.peer, time.Now().UTC()
	s.jobs = append(s.jobs, j)
	s.emit(orchestrator.Event{Kind: orchestrator.EventJobQueued, Workspace: j.Workspace, Run: j.Run, Job: j.ID})
}

func (s *Service) job(id orchestrator.JobID) (*orchestrator.Job, error) {
	for i := range s.jobs {
		if s.jobs[i].ID == id {
			return &s.jobs[i], nil
		}
	}
	return nil, notFound("job", string(id))
}

// SetJob changes a job and tells of it: as finished where its state is final.
func (s *Service) SetJob(id orchestrator.JobID, change func(*orchestrator.Job)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	j, err := s.job(id)
	if err != nil {
		return err
	}
	change(j)
	kind := orchestrator.EventJobStarted
	switch {
	case j.State == orchestrator.JobInterrupted:
		kind = orchestrator.EventJobInterrupted
	case j.State.Final():
		kind, j.FinishedAt = orchestrator.EventJobFinished, time.Now().UTC()
	}
	s.emit(orchestrator.Event{Kind: kind, Workspace: j.Workspace, Run: j.Run, Job: j.ID, State: string(j.State)})
	return nil
}

// AppendLog adds to a job's log.
func (s *Service) AppendLog(id orchestrator.JobID, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs[id] = append(s.logs[id], text...)
	s.wake()
}

// ListJobs implements [rpc.Jobs].
func (s *Service) ListJobs(_ context.Context, f orchestrator.JobFilter) ([]orchestrator.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []orchestrator.Job
	for _, j := range slices.Backward(s.jobs) {
		if (f.Workspace == "" || f.Workspace == j.Workspace) &&
			(f.Run == "" || f.Run == j.Run) &&
			(f.State == "" || f.State == j.State) &&
			(f.Limit == 0 || len(list) < f.Limit) {
			list = append(list, j)
		}
	}
	return list, nil
}

// GetJob implements [rpc.Jobs].
func (s *Service) GetJob(_ context.Context, id orchestrator.JobID) (orchestrator.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j, err := s.job(id)
	if err != nil {
		return orchestrator.Job{}, err
	}
	return *j, nil
}

// RedriveJob implements [rpc.Jobs].
func (s *Service) RedriveJob(_ context.Context, id orchestrator.JobID) (orchestrator.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, err := s.job(id)
	if err != nil {
		return orchestrator.Job{}, err
	}
	if old.State != orchestrator.JobInterrupted {
		return orchestrator.Job{}, orchestrator.Errorf(orchestrator.CodeConflict, "job %s is %s, not interrupted", id, old.State)
	}
	if old.RedrivenBy == "" {
		old.RedrivenBy = orchestrator.JobID(s.id("job"))
		s.add(string(old.RedrivenBy), orchestrator.Job{
			Kind: old.Kind, Workspace: old.Workspace, Spec: old.Spec, Attempt: old.Attempt, Redrives: id,
		})
		old, _ = s.job(id) // it may have moved
	}
	j, err := s.job(old.RedrivenBy)
	if err != nil {
		return orchestrator.Job{}, err
	}
	return *j, nil
}

// CancelJob implements [rpc.Jobs]. The job is cancelled at once.
func (s *Service) CancelJob(ctx context.Context, id orchestrator.JobID, force bool) (orchestrator.Job, error) {
	j, err := s.GetJob(ctx, id)
	if err != nil {
		return orchestrator.Job{}, err
	}
	if j.State.Final() {
		return orchestrator.Job{}, orchestrator.Errorf(orchestrator.CodeConflict, "job %s is already %s", id, j.State)
	}
	err = s.SetJob(id, func(j *orchestrator.Job) {
		j.CancelRequested, j.CancelForce, j.State = true, force, orchestrator.JobCancelled
	})
	if err != nil {
		return orchestrator.Job{}, err
	}
	return s.GetJob(ctx, id)
}

// ReadLog implements [rpc.Jobs].
func (s *Service) ReadLog(ctx context.Context, req rpc.LogRequest, send func(rpc.LogChunk) error) error {
	for {
		s.mu.Lock()
		j, err := s.job(req.Job)
		if err != nil {
			s.mu.Unlock()
			return err
		}
		final, changed := j.State.Final(), s.changed
		data := slices.Clone(s.logs[req.Job][min(req.Offset, int64(len(s.logs[req.Job]))):])
		s.mu.Unlock()
		if len(data) > 0 {
			if err := send(rpc.LogChunk{Offset: req.Offset, Data: data}); err != nil {
				return err
			}
			req.Offset += int64(len(data))
			continue
		}
		if !req.Follow || final {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
