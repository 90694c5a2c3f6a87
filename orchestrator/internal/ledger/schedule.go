package ledger

import (
	"context"
	"slices"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

// AddSchedule stores a schedule, or replaces the settings of one: its instants
// count from now. Adding the same again changes nothing. Its workspace must be
// registered and, for applies, have a root module; that it stays so is looked at
// by each fire.
func (l *Ledger) AddSchedule(ctx context.Context, s orchestrator.Schedule, by orchestrator.Peer) (orchestrator.Schedule, error) {
	if err := s.Validate(); err != nil {
		return s, err
	}
	err := l.write(ctx, "add schedule", func(t *tx) error {
		w, err := workspaceByName(ctx, t, s.Workspace)
		if err != nil {
			return err
		}
		if s.Kind == orchestrator.ScheduleApply {
			if err := w.RefuseHandedOver(); err != nil {
				return err
			}
		}
		old, found, err := findSchedule(ctx, t, s.Name)
		if err != nil {
			return err
		}
		e := orchestrator.Event{
			Kind: orchestrator.EventScheduleAdded, Workspace: s.Workspace, By: by,
			Message: "schedule " + s.Name + " added by " + who(by) + ": " + string(s.Kind) + " " + s.Target() + " at " + s.Cron,
		}
		s.CreatedBy, s.CreatedAt, s.UpdatedAt = by, t.now, t.now
		if found {
			if sameSchedule(old, s) {
				s = old
				return nil
			}
			s.CreatedAt, s.Paused = old.CreatedAt, old.Paused
			e.Kind, e.Message = orchestrator.EventScheduleChanged, "schedule "+s.Name+" changed by "+who(by)+": "+string(s.Kind)+" "+s.Target()+" at "+s.Cron
			if err := t.giveUpWaiting(ctx, s.Name, "the schedule was changed", by); err != nil {
				return err
			}
		}
		if err := t.putSchedule(ctx, s); err != nil {
			return err
		}
		return t.event(ctx, e)
	})
	return s, err
}

// Schedule returns the schedule of that name.
func (l *Ledger) Schedule(ctx context.Context, name string) (s orchestrator.Schedule, err error) {
	err = l.read(ctx, "read schedule", func(q querier) (err error) {
		s, err = scheduleByName(ctx, q, name)
		return err
	})
	return s, err
}

// Schedules returns every schedule, by name.
func (l *Ledger) Schedules(ctx context.Context) (out []orchestrator.Schedule, err error) {
	err = l.read(ctx, "read schedules", func(q querier) (err error) {
		out, err = collect(ctx, q, scanSchedule, scheduleSelect+` ORDER BY name`)
		return err
	})
	return out, err
}

// ScheduleMarks returns the schedules that are not paused, and how far their
// instants are on record.
func (l *Ledger) ScheduleMarks(ctx context.Context) (out []orchestrator.ScheduleMark, err error) {
	err = l.read(ctx, "read schedules", func(q querier) (err error) {
		out, err = collect(ctx, q, scanMark, scheduleSelect+` WHERE paused = 0 ORDER BY name`)
		return err
	})
	return out, err
}

// SetPaused pauses a schedule or lets it go on: its instants in between are
// passed over. A fire that waits is given up. Doing it again changes nothing.
func (l *Ledger) SetPaused(ctx context.Context, name string, paused bool, by orchestrator.Peer) (s orchestrator.Schedule, err error) {
	err = l.write(ctx, "pause schedule", func(t *tx) error {
		if s, err = scheduleByName(ctx, t, name); err != nil || s.Paused == paused {
			return err
		}
		s.Paused, s.UpdatedAt = paused, t.now
		e := orchestrator.Event{Kind: orchestrator.EventScheduleResumed, Workspace: s.Workspace, By: by, Message: "schedule " + name + " resumed by " + who(by)}
		if paused {
			e.Kind, e.Message = orchestrator.EventSchedulePaused, "schedule "+name+" paused by "+who(by)
			if err := t.giveUpWaiting(ctx, name, "the schedule was paused", by); err != nil {
				return err
			}
		}
		if err := t.putSchedule(ctx, s); err != nil {
			return err
		}
		return t.event(ctx, e)
	})
	return s, err
}

// RemoveSchedule forgets a schedule; a job that it started goes on.
func (l *Ledger) RemoveSchedule(ctx context.Context, name string, by orchestrator.Peer) error {
	return l.write(ctx, "remove schedule", func(t *tx) error {
		s, err := scheduleByName(ctx, t, name)
		if err != nil {
			return err
		}
		if err := t.giveUpWaiting(ctx, name, "the schedule was removed", by); err != nil {
			return err
		}
		if err := t.exec(ctx, `DELETE FROM schedule WHERE name = ?`, name); err != nil {
			return err
		}
		return t.event(ctx, orchestrator.Event{
			Kind: orchestrator.EventScheduleRemoved, Workspace: s.Workspace, By: by,
			Message: "schedule " + name + " removed by " + who(by),
		})
	})
}

// SetHandled moves the mark of a schedule back, where the clock was set back;
// one that is not the mark that was read stays, as for [Ledger.RecordFires].
func (l *Ledger) SetHandled(ctx context.Context, read orchestrator.ScheduleMark, at time.Time) error {
	return l.write(ctx, "set schedule mark", func(t *tx) error {
		m, found, err := sameMark(ctx, t, read)
		if err != nil || !found {
			return err
		}
		return t.setHandled(ctx, m.Schedule.Name, at)
	})
}

// sameMark returns the mark of a schedule that is not paused if it is still the
// one that was read.
func sameMark(ctx context.Context, q querier, read orchestrator.ScheduleMark) (orchestrator.ScheduleMark, bool, error) {
	return one(ctx, q, scanMark, scheduleSelect+` WHERE name = ? AND paused = 0 AND handled_at = ?`, read.Schedule.Name, nanos(read.Handled))
}

func (t *tx) setHandled(ctx context.Context, name string, at time.Time) error {
	return t.exec(ctx, `UPDATE schedule SET handled_at = ? WHERE name = ?`, nanos(at), name)
}

const scheduleSelect = `
	SELECT
		name,
		kind,
		workspace,
		cron,
		timezone,
		concurrency_key,
		playbook,
		args,
		egress,
		ssh_identities,
		no_admit,
		keep_going,
		paused,
		created_by,
		created_at,
		updated_at,
		handled_at
	FROM schedule`

func scanMark(row scanner) (m orchestrator.ScheduleMark, err error) {
	s := &m.Schedule
	err = row.Scan(&s.Name, &s.Kind, &s.Workspace, &s.Cron, &s.Timezone, &s.ConcurrencyKey, &s.Playbook,
		document{&s.Args}, document{&s.Egress}, document{&s.SSHIdentities}, &s.NoAdmit, &s.KeepGoing, &s.Paused,
		document{&s.CreatedBy}, &instant{&s.CreatedAt}, &instant{&s.UpdatedAt}, &instant{&m.Handled})
	s.Args, s.SSHIdentities = nilIfEmpty(s.Args), nilIfEmpty(s.SSHIdentities)
	if len(s.Egress) == 0 {
		s.Egress = nil
	}
	return m, err
}

func scanSchedule(row scanner) (orchestrator.Schedule, error) {
	m, err := scanMark(row)
	return m.Schedule, err
}

// putSchedule stores s; its instants count from now.
func (t *tx) putSchedule(ctx context.Context, s orchestrator.Schedule) error {
	if s.Egress == nil {
		s.Egress = []int{}
	}
	return t.exec(ctx, `
		INSERT OR REPLACE INTO schedule (
			name,
			kind,
			workspace,
			cron,
			timezone,
			concurrency_key,
			playbook,
			args,
			egress,
			ssh_identities,
			no_admit,
			keep_going,
			paused,
			handled_at,
			created_by,
			created_at,
			updated_at
		) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		s.Name, s.Kind, s.Workspace, s.Cron, s.Timezone, s.ConcurrencyKey, s.Playbook, texts(s.Args), document{s.Egress},
		texts(s.SSHIdentities), s.NoAdmit, s.KeepGoing, s.Paused, nanos(t.now), document{s.CreatedBy},
		nanos(s.CreatedAt), nanos(s.UpdatedAt))
}

func findSchedule(ctx context.Context, q querier, name string) (orchestrator.Schedule, bool, error) {
	return one(ctx, q, scanSchedule, scheduleSelect+` WHERE name = ?`, name)
}

func scheduleByName(ctx context.Context, q querier, name string) (orchestrator.Schedule, error) {
	s, found, err := findSchedule(ctx, q, name)
	if err == nil && !found {
		err = orchestrator.Errorf(orchestrator.CodeNotFound, "there is no schedule %q", name).
			WithHint("list them: exocomp schedule list")
	}
	return s, err
}

// sameSchedule compares what a person states.
func sameSchedule(a, b orchestrator.Schedule) bool {
	return a.Kind == b.Kind && a.Workspace == b.Workspace && a.Cron == b.Cron && a.Timezone == b.Timezone &&
		a.ConcurrencyKey == b.ConcurrencyKey && a.Playbook == b.Playbook && a.NoAdmit == b.NoAdmit && a.KeepGoing == b.KeepGoing &&
		slices.Equal(a.Args, b.Args) && slices.Equal(a.Egress, b.Egress) && slices.Equal(a.SSHIdentities, b.SSHIdentities)
}
