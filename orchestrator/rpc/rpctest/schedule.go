package rpctest

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

// Next are the instants that every schedule is answered with.
var Next = []time.Time{
	time.Date(2031, 1, 1, 3, 0, 0, 0, time.UTC), time.Date(2031, 1, 2, 3, 0, 0, 0, time.UTC), time.Date(2031, 1, 3, 3, 0, 0, 0, time.UTC),
}

// AddSchedule implements [rpc.Schedules]. It does not read the cron expression.
func (s *Service) AddSchedule(ctx context.Context, sched orchestrator.Schedule) (orchestrator.ScheduleView, error) {
	if err := sched.Validate(); err != nil {
		return orchestrator.ScheduleView{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.workspaces[sched.Workspace]; !ok {
		return orchestrator.ScheduleView{}, notFound("workspace", sched.Workspace)
	}
	v := orchestrator.ScheduleView{Schedule: sched, Next: Next}
	if old, err := s.schedule(sched.Name); err == nil {
		v.Fires = old.Fires
		*old = v
		return v, nil
	}
	s.schedules = append(s.schedules, v)
	slices.SortFunc(s.schedules, func(a, b orchestrator.ScheduleView) int { return strings.Compare(a.Schedule.Name, b.Schedule.Name) })
	s.emit(orchestrator.Event{Kind: orchestrator.EventScheduleAdded, Workspace: sched.Workspace})
	return v, nil
}

func (s *Service) schedule(name string) (*orchestrator.ScheduleView, error) {
	for i := range s.schedules {
		if s.schedules[i].Schedule.Name == name {
			return &s.schedules[i], nil
		}
	}
	return nil, notFound("schedule", name)
}

// SetFires states what became of a schedule's instants, the newest first; the
// newest is also how RunSchedule answers.
func (s *Service) SetFires(name string, fires ...orchestrator.Fire) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.schedule(name)
	if err != nil {
		return err
	}
	v.Fires = fires
	return nil
}

// GetSchedule implements [rpc.Schedules].
func (s *Service) GetSchedule(_ context.Context, name string, fires int) (orchestrator.ScheduleView, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.schedule(name)
	if err != nil {
		return orchestrator.ScheduleView{}, err
	}
	out := *v
	if fires > 0 && len(out.Fires) > fires {
		out.Fires = out.Fires[:fires]
	}
	return out, nil
}

// GetFire implements [rpc.Schedules]. Fires outlive their schedules.
func (s *Service) GetFire(_ context.Context, id int64) (orchestrator.Fire, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.forgotten
	for _, v := range s.schedules {
		all = slices.Concat(all, v.Fires)
	}
	if i := slices.IndexFunc(all, func(f orchestrator.Fire) bool { return f.ID == id }); i >= 0 {
		return all[i], nil
	}
	return orchestrator.Fire{}, notFound("fire", strconv.FormatInt(id, 10))
}

// ListSchedules implements [rpc.Schedules].
func (s *Service) ListSchedules(context.Context) ([]orchestrator.ScheduleView, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Clone(s.schedules)
	for i := range out {
		out[i].Fires = out[i].Fires[:min(1, len(out[i].Fires))]
	}
	return out, nil
}

// PauseSchedule implements [rpc.Schedules].
func (s *Service) PauseSchedule(_ context.Context, name string, resume bool) (orchestrator.ScheduleView, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.schedule(name)
	if err != nil {
		return orchestrator.ScheduleView{}, err
	}
	v.Schedule.Paused, v.Next = !resume, nil
	if resume {
		v.Next = Next
	}
	return *v, nil
}

// RemoveSchedule implements [rpc.Schedules].
func (s *Service) RemoveSchedule(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.schedule(name)
	if err != nil {
		return err
	}
	s.forgotten = slices.Concat(s.forgotten, v.Fires)
	s.schedules = slices.DeleteFunc(s.schedules, func(v orchestrator.ScheduleView) bool { return v.Schedule.Name == name })
	return nil
}

// RunSchedule implements [rpc.Schedules].
func (s *Service) RunSchedule(_ context.Context, _, name string) (orchestrator.Fire, error) {
	if s.AfterRun != nil {
		defer s.AfterRun()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.schedule(name)
	if err != nil || len(v.Fires) == 0 {
		return orchestrator.Fire{Schedule: name, State: orchestrator.FireWaiting, Manual: true}, err
	}
	return v.Fires[0], nil
}
