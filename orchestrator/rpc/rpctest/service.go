package rpctest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// Service is a daemon's service in memory. It does what the contract says with
// workspaces, runs, jobs, snapshots and events; nothing ever runs: a test moves
// runs and jobs with the methods that do not belong to [rpc.Service]. The
// exported fields are answered as they are; set them before serving.
type Service struct {
	// AfterRun, where set, is called as RunSchedule has its answer.
	AfterRun func()

	Status      rpc.Status
	Inventories map[string]rpc.InventoryView // by workspace
	Pins        []orchestrator.Pin
	FleetKey    string
	OnboardVars rpc.OnboardVars
	// What becomes of a resource's calls; nil: they are refused.
	Ensure func(context.Context, orchestrator.EnsureRun, func(orchestrator.Ensured) error) error
	End    func(context.Context, orchestrator.EndProvision, func(orchestrator.ProvisionEnd) error) error

	mu         sync.Mutex
	changed    chan struct{} // closed and replaced at every change
	last       int           // number of the newest id
	peer       orchestrator.Peer
	workspaces map[string]orchestrator.Workspace
	runs       []orchestrator.Run
	jobs       []orchestrator.Job
	schedules  []orchestrator.ScheduleView // by name
	forgotten  []orchestrator.Fire         // of schedules that were removed
	keys       map[string]submitted
	logs       map[orchestrator.JobID][]byte
	snapshots  map[string][]byte
	events     []orchestrator.Event
}

var _ rpc.Service = (*Service)(nil)

// submitted is what an idempotency key stands for.
type submitted struct{ content, id string }

// NewService returns an empty service.
func NewService() *Service {
	return &Service{
		Inventories: make(map[string]rpc.InventoryView),
		changed:     make(chan struct{}),
		workspaces:  make(map[string]orchestrator.Workspace),
		keys:        make(map[string]submitted),
		logs:        make(map[orchestrator.JobID][]byte),
		snapshots:   make(map[string][]byte),
	}
}

// Peer returns who made the newest submit.
func (s *Service) Peer() orchestrator.Peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peer
}

// Emit appends an event and returns it with its id.
func (s *Service) Emit(e orchestrator.Event) orchestrator.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.emit(e)
}

func (s *Service) emit(e orchestrator.Event) orchestrator.Event {
	e.ID = int64(len(s.events) + 1)
	e.At = time.Now().UTC()
	s.events = append(s.events, e)
	s.wake()
	return e
}

func (s *Service) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// id returns a fresh id; ids sort by age.
func (s *Service) id(prefix string) string {
	s.last++
	return fmt.Sprintf("%s_%026d", prefix, s.last)
}

// once returns what key was used for, or notes that it stands for a fresh id.
func (s *Service) once(ctx context.Context, key, prefix string, content any) (id string, fresh bool, err error) {
	s.peer = rpc.PeerFrom(ctx)
	c, err := json.Marshal(content)
	if err != nil {
		return "", false, fmt.Errorf("compare submits: %w", err)
	}
	if old, ok := s.keys[key]; ok {
		if old.content != string(c) {
			return "", false, orchestrator.Errorf(orchestrator.CodeConflict, "the key %q was used for something else", key)
		}
		return old.id, false, nil
	}
	id = s.id(prefix)
	s.keys[key] = submitted{content: string(c), id: id}
	return id, true, nil
}

// GetStatus implements [rpc.Daemon].
func (s *Service) GetStatus(context.Context) (rpc.Status, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status(), nil
}

func (s *Service) status() rpc.Status {
	st := s.Status
	st.LastEvent = int64(len(s.events))
	for _, j := range s.jobs {
		switch j.State {
		case orchestrator.JobQueued:
			st.Queued++
		case orchestrator.JobRunning:
			st.Running++
		}
	}
	return st
}

// Drain implements [rpc.Daemon].
func (s *Service) Drain(_ context.Context, off bool) (rpc.Status, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Status.Draining = !off
	kind := orchestrator.EventDrainStarted
	if off {
		kind = orchestrator.EventDrainEnded
	}
	s.emit(orchestrator.Event{Kind: kind})
	return s.status(), nil
}

// HasSnapshot implements [rpc.Snapshots].
func (s *Service) HasSnapshot(_ context.Context, digest string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.snapshots[digest]
	return ok, nil
}

// UploadSnapshot implements [rpc.Snapshots]. It does not check the digest.
func (s *Service) UploadSnapshot(_ context.Context, header rpc.SnapshotHeader, r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("store snapshot: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snapshots[header.Digest] = data
	return nil
}

// Snapshot returns an uploaded snapshot, or nil.
func (s *Service) Snapshot(digest string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshots[digest]
}

// ListEvents implements [rpc.Events].
func (s *Service) ListEvents(_ context.Context, filter orchestrator.EventFilter) ([]orchestrator.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.selected(filter)
	if filter.Newest > 0 && len(found) > filter.Newest {
		found = found[len(found)-filter.Newest:]
	}
	if filter.Limit > 0 && len(found) > filter.Limit {
		found = found[:filter.Limit]
	}
	return found, nil
}

func (s *Service) selected(f orchestrator.EventFilter) []orchestrator.Event {
	var found []orchestrator.Event
	for _, e := range s.events {
		if e.ID > f.After &&
			(f.Workspace == "" || f.Workspace == e.Workspace) &&
			(f.Run == "" || f.Run == e.Run) &&
			(f.Job == "" || f.Job == e.Job) &&
			(!f.Security || e.Kind.Security()) {
			found = append(found, e)
		}
	}
	return found
}

// WatchEvents implements [rpc.Events].
func (s *Service) WatchEvents(ctx context.Context, filter orchestrator.EventFilter, send func(orchestrator.Event) error) error {
	for {
		s.mu.Lock()
		found, changed := s.selected(filter), s.changed
		s.mu.Unlock()
		for _, e := range found {
			if err := send(e); err != nil {
				return err
			}
			filter.After = e.ID
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
