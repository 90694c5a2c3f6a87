package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/schedule"
	"github.com/exocomp/exocomp/orchestrator/playbook"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// showNext is how many instants of a schedule are shown.
const showNext = 3

// AddSchedule implements [rpc.Schedules]. What a fire would look at is looked at
// now, so that a mistake is refused while somebody is there to read it.
func (d *Daemon) AddSchedule(ctx context.Context, s orchestrator.Schedule) (orchestrator.ScheduleView, error) {
	var m orchestrator.Mistakes
	m.Add(s.Validate())
	_, err := schedule.Parse(s.Cron, s.Timezone)
	m.Add(err)
	if err := m.Err(); err != nil {
		return orchestrator.ScheduleView{}, err
	}
	if s.Kind == orchestrator.SchedulePlay {
		if _, err := d.playOf(ctx, s); err != nil {
			return orchestrator.ScheduleView{}, err
		}
	}
	s.Paused = false
	added, err := d.ledger.AddSchedule(ctx, s, rpc.PeerFrom(ctx))
	if err != nil {
		return orchestrator.ScheduleView{}, err
	}
	return d.viewSchedule(ctx, added, 1)
}

// GetSchedule implements [rpc.Schedules].
func (d *Daemon) GetSchedule(ctx context.Context, name string, fires int) (orchestrator.ScheduleView, error) {
	s, err := d.ledger.Schedule(ctx, name)
	if err != nil {
		return orchestrator.ScheduleView{}, err
	}
	v, err := d.viewSchedule(ctx, s, fires)
	return settled(ctx, d, v, err)
}

// GetFire implements [rpc.Schedules].
func (d *Daemon) GetFire(ctx context.Context, id int64) (orchestrator.Fire, error) {
	f, err := d.ledger.Fire(ctx, id)
	return settled(ctx, d, f, err)
}

// ListSchedules implements [rpc.Schedules].
func (d *Daemon) ListSchedules(ctx context.Context) ([]orchestrator.ScheduleView, error) {
	all, err := d.ledger.Schedules(ctx)
	views := make([]orchestrator.ScheduleView, len(all))
	for i, s := range all {
		if err == nil {
			views[i], err = d.viewSchedule(ctx, s, 1)
		}
	}
	return settled(ctx, d, views, err)
}

// PauseSchedule implements [rpc.Schedules].
func (d *Daemon) PauseSchedule(ctx context.Context, name string, resume bool) (orchestrator.ScheduleView, error) {
	s, err := d.ledger.SetPaused(ctx, name, !resume, rpc.PeerFrom(ctx))
	if err != nil {
		return orchestrator.ScheduleView{}, err
	}
	return d.viewSchedule(ctx, s, 1)
}

// RemoveSchedule implements [rpc.Schedules].
func (d *Daemon) RemoveSchedule(ctx context.Context, name string) error {
	return d.ledger.RemoveSchedule(ctx, name, rpc.PeerFrom(ctx))
}

// RunSchedule implements [rpc.Schedules]: the loop decides this fire as every
// other.
func (d *Daemon) RunSchedule(ctx context.Context, key, name string) (orchestrator.Fire, error) {
	f, err := d.ledger.RunSchedule(ctx, orchestrator.RunSchedule{Key: key, Schedule: name, At: time.Now(), By: rpc.PeerFrom(ctx)})
	for err == nil {
		changed := d.ledger.Changed()
		if f, err = d.ledger.Fire(ctx, f.ID); err != nil || f.State != orchestrator.FireWaiting || f.Reason != "" {
			break
		}
		select {
		case <-ctx.Done():
			return f, ctx.Err()
		case <-changed:
		}
	}
	return settled(ctx, d, f, err)
}

// viewSchedule shows a schedule with its newest fires and next instants.
func (d *Daemon) viewSchedule(ctx context.Context, s orchestrator.Schedule, fires int) (v orchestrator.ScheduleView, err error) {
	v.Schedule = s
	if v.Fires, err = d.ledger.Fires(ctx, s.Name, fires); err != nil || s.Paused {
		return v, err
	}
	spec, err := schedule.Parse(s.Cron, s.Timezone)
	if err != nil {
		return v, err
	}
	for at := spec.Next(time.Now()); !at.IsZero() && len(v.Next) < showNext; at = spec.Next(at) {
		v.Next = append(v.Next, at)
	}
	return v, nil
}

// runSchedules makes the fires of all schedules. It begins when the jobs of the
// daemon before are taken up and the inventories are published.
func (d *Daemon) runSchedules(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-d.engine.Recovered():
	}
	loop := &schedule.Loop{Ledger: d.ledger, Prepare: d.prepareFire, Clock: schedule.WallClock{}, Logger: d.log}
	return loop.Run(ctx)
}

// prepareFire returns the job that a schedule starts now. A play fails closed:
// the inventory must stand and name hosts, and the playbook, which is read anew,
// must be there.
func (d *Daemon) prepareFire(ctx context.Context, s orchestrator.Schedule) (n orchestrator.NewJob, err error) {
	n.Workspace = s.Workspace
	if s.Kind == orchestrator.ScheduleApply {
		n.Kind = orchestrator.JobWorkspaceApply
		return n, d.reviewLost(ctx, s.Workspace)
	}
	n.Kind = orchestrator.JobPlaybookRun
	if _, err := d.engine.StandingInventory(ctx, s.Target()); err != nil {
		return n, err
	}
	n.Spec, err = d.playOf(ctx, s)
	return n, err
}

// playOf takes the snapshot of a schedule's playbook as it is now and checks what
// a job with it would be asked to do.
func (d *Daemon) playOf(ctx context.Context, s orchestrator.Schedule) (orchestrator.JobSpec, error) {
	ref, err := d.snapshot(ctx, s.Playbook)
	if err != nil {
		return orchestrator.JobSpec{}, ofSchedule(s, err)
	}
	spec := orchestrator.JobSpec{
		Play: &orchestrator.PlaySpec{Playbook: ref, SSHIdentities: s.SSHIdentities},
		Args: s.Args, Egress: s.Egress, NoAdmit: s.NoAdmit, KeepGoing: s.KeepGoing,
	}
	return spec, d.checkPlaybook(&spec)
}

// ofSchedule says where a playbook that is not there was looked for.
func ofSchedule(s orchestrator.Schedule, err error) error {
	if !errors.Is(err, orchestrator.ErrNotFound) {
		return err
	}
	return orchestrator.Errorf(orchestrator.CodeNotFound, "the daemon's host has no playbook %s", s.Playbook).
		WithHint("put it there, or change the schedule: exocomp schedule add %s … -- PLAYBOOK", s.Name)
}

// snapshot makes and keeps the snapshot of a playbook on this host.
func (d *Daemon) snapshot(ctx context.Context, path string) (ref orchestrator.PlaybookRef, err error) {
	root, entry, err := playbook.Root(path)
	if err != nil {
		return ref, err
	}
	taken, err := playbook.Take(ctx, root, entry)
	if err != nil {
		return ref, err
	}
	has, err := d.snapshots.has(taken.Digest)
	if err == nil && !has {
		err = d.snapshots.put(ctx, taken.Digest, taken.NewReader())
	}
	return orchestrator.PlaybookRef{Path: path, Entry: entry, Digest: taken.Digest}, err
}
