package rpc

import (
	"context"

	"github.com/exocomp/exocomp/orchestrator"
	exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"
)

// Schedules keeps recurring work.
type Schedules interface {
	// AddSchedule stores s, or replaces the settings of one of that name; who
	// added it, times, and whether it is paused are ignored in s.
	AddSchedule(ctx context.Context, s orchestrator.Schedule) (orchestrator.ScheduleView, error)
	// GetSchedule answers with as many of the newest fires, or all for 0.
	GetSchedule(ctx context.Context, name string, fires int) (orchestrator.ScheduleView, error)
	GetFire(ctx context.Context, id int64) (orchestrator.Fire, error)
	// ListSchedules answers each with its newest fire.
	ListSchedules(ctx context.Context) ([]orchestrator.ScheduleView, error)
	PauseSchedule(ctx context.Context, name string, resume bool) (orchestrator.ScheduleView, error)
	RemoveSchedule(ctx context.Context, name string) error
	// RunSchedule answers once the fire is decided, or waits for another one.
	RunSchedule(ctx context.Context, key, name string) (orchestrator.Fire, error)
}

type scheduleServer struct {
	exocompv1.UnimplementedScheduleServiceServer
	svc Schedules
}

func (s scheduleServer) AddSchedule(ctx context.Context, req *exocompv1.AddScheduleRequest) (*exocompv1.AddScheduleResponse, error) {
	v, err := s.svc.AddSchedule(ctx, scheduleFromWire(req.GetSchedule()))
	if err != nil {
		return nil, err
	}
	return &exocompv1.AddScheduleResponse{Schedule: scheduleViewToWire(v)}, nil
}

func (s scheduleServer) GetSchedule(ctx context.Context, req *exocompv1.GetScheduleRequest) (*exocompv1.GetScheduleResponse, error) {
	v, err := s.svc.GetSchedule(ctx, req.GetName(), int(req.GetFires()))
	if err != nil {
		return nil, err
	}
	return &exocompv1.GetScheduleResponse{Schedule: scheduleViewToWire(v)}, nil
}

func (s scheduleServer) GetFire(ctx context.Context, req *exocompv1.GetFireRequest) (*exocompv1.GetFireResponse, error) {
	f, err := s.svc.GetFire(ctx, req.GetId())
	if err != nil {
		return nil, err
	}
	return &exocompv1.GetFireResponse{Fire: fireToWire(f)}, nil
}

func (s scheduleServer) ListSchedules(ctx context.Context, _ *exocompv1.ListSchedulesRequest) (*exocompv1.ListSchedulesResponse, error) {
	all, err := s.svc.ListSchedules(ctx)
	if err != nil {
		return nil, err
	}
	return &exocompv1.ListSchedulesResponse{Schedules: convert(all, scheduleViewToWire)}, nil
}

func (s scheduleServer) PauseSchedule(ctx context.Context, req *exocompv1.PauseScheduleRequest) (*exocompv1.PauseScheduleResponse, error) {
	v, err := s.svc.PauseSchedule(ctx, req.GetName(), req.GetResume())
	if err != nil {
		return nil, err
	}
	return &exocompv1.PauseScheduleResponse{Schedule: scheduleViewToWire(v)}, nil
}

func (s scheduleServer) RemoveSchedule(ctx context.Context, req *exocompv1.RemoveScheduleRequest) (*exocompv1.RemoveScheduleResponse, error) {
	return &exocompv1.RemoveScheduleResponse{}, s.svc.RemoveSchedule(ctx, req.GetName())
}

func (s scheduleServer) RunSchedule(ctx context.Context, req *exocompv1.RunScheduleRequest) (*exocompv1.RunScheduleResponse, error) {
	if err := requireKey(req.GetKey()); err != nil {
		return nil, err
	}
	f, err := s.svc.RunSchedule(ctx, req.GetKey(), req.GetName())
	if err != nil {
		return nil, err
	}
	return &exocompv1.RunScheduleResponse{Fire: fireToWire(f)}, nil
}

// AddSchedule implements [Schedules].
func (c *Client) AddSchedule(ctx context.Context, s orchestrator.Schedule) (orchestrator.ScheduleView, error) {
	resp, err := c.stubs.schedules.AddSchedule(ctx, &exocompv1.AddScheduleRequest{Schedule: scheduleToWire(s)})
	return scheduleViewFromWire(resp.GetSchedule()), err
}

// GetSchedule implements [Schedules].
func (c *Client) GetSchedule(ctx context.Context, name string, fires int) (orchestrator.ScheduleView, error) {
	resp, err := c.stubs.schedules.GetSchedule(ctx, &exocompv1.GetScheduleRequest{Name: name, Fires: int64(fires)})
	return scheduleViewFromWire(resp.GetSchedule()), err
}

// GetFire implements [Schedules].
func (c *Client) GetFire(ctx context.Context, id int64) (orchestrator.Fire, error) {
	resp, err := c.stubs.schedules.GetFire(ctx, &exocompv1.GetFireRequest{Id: id})
	return fireFromWire(resp.GetFire()), err
}

// ListSchedules implements [Schedules].
func (c *Client) ListSchedules(ctx context.Context) ([]orchestrator.ScheduleView, error) {
	resp, err := c.stubs.schedules.ListSchedules(ctx, &exocompv1.ListSchedulesRequest{})
	return convert(resp.GetSchedules(), scheduleViewFromWire), err
}

// PauseSchedule implements [Schedules].
func (c *Client) PauseSchedule(ctx context.Context, name string, resume bool) (orchestrator.ScheduleView, error) {
	resp, err := c.stubs.schedules.PauseSchedule(ctx, &exocompv1.PauseScheduleRequest{Name: name, Resume: resume})
	return scheduleViewFromWire(resp.GetSchedule()), err
}

// RemoveSchedule implements [Schedules].
func (c *Client) RemoveSchedule(ctx context.Context, name string) error {
	_, err := c.stubs.schedules.RemoveSchedule(ctx, &exocompv1.RemoveScheduleRequest{Name: name})
	return err
}

// RunSchedule implements [Schedules].
func (c *Client) RunSchedule(ctx context.Context, key, name string) (orchestrator.Fire, error) {
	req := &exocompv1.RunScheduleRequest{Key: keyOr(key), Name: name}
	resp, err := submit(ctx, c, c.stubs.schedules.RunSchedule, req)
	return fireFromWire(resp.GetFire()), err
}
