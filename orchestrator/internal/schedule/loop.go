package schedule

import (
	"context"
	"log/slog"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/fault"
)

// Ledger is what the loop needs of the ledger.
type Ledger interface {
	// Changed returns a channel that is closed at the next change.
	Changed() <-chan struct{}
	ScheduleMarks(ctx context.Context) ([]orchestrator.ScheduleMark, error)
	SetHandled(ctx context.Context, read orchestrator.ScheduleMark, at time.Time) error
	RecordFires(ctx context.Context, read orchestrator.ScheduleMark, due []orchestrator.DueFire, mark time.Time) error
	NextFire(ctx context.Context) (f orchestrator.Fire, s orchestrator.Schedule, found bool, err error)
	StartFire(ctx context.Context, id int64, n orchestrator.NewJob) error
	RefuseFire(ctx context.Context, id int64, why error) error
}

// Clock is the clock on the wall. It may be set, and stands still for a machine
// that sleeps; timers do not know of either.
type Clock interface {
	Now() time.Time
	After(time.Duration) <-chan time.Time
}

// WallClock is the machine's.
type WallClock struct{}

// Now implements [Clock]. What it returns compares by the wall alone.
func (WallClock) Now() time.Time { return time.Now().Round(0) }

// After implements [Clock].
func (WallClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

const (
	// tick is how long the loop sleeps at most: a clock that was set, or a machine
	// that slept, is noticed that soon.
	tick = 30 * time.Second
	// retry is how soon a ledger that failed is asked again.
	retry = 10 * time.Second
)

// Loop makes the fires of all schedules. Every field must be set.
type Loop struct {
	Ledger Ledger
	// Prepare returns the job that a schedule starts now, or the error that says
	// why it starts none. It changes nothing that counts.
	Prepare func(ctx context.Context, s orchestrator.Schedule) (orchestrator.NewJob, error)
	Clock   Clock
	Logger  *slog.Logger

	specs map[[2]string]Spec // by expression and zone
}

// Run makes fires until ctx ends. It sleeps until the next instant, a change of
// the ledger (a schedule, or the end of a job for which a fire waits) or the
// tick, whatever comes first.
func (l *Loop) Run(ctx context.Context) error {
	for {
		changed := l.Ledger.Changed()
		wait := l.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-l.Clock.After(wait):
		}
	}
}

// look records what is due, starts what may start, and returns how long there is
// nothing to do.
func (l *Loop) look(ctx context.Context) time.Duration {
	marks, err := l.Ledger.ScheduleMarks(ctx)
	if err != nil {
		l.complain(ctx, "read schedules", err)
		return retry
	}
	now, wait := l.Clock.Now(), tick
	for _, m := range marks {
		next, err := l.record(ctx, m, now)
		if err != nil {
			l.complain(ctx, "record fires of schedule "+m.Schedule.Name, err)
			wait = min(wait, retry)
		} else if !next.IsZero() {
			wait = min(wait, next.Sub(now))
		}
	}
	if err := l.start(ctx); err != nil {
		l.complain(ctx, "start fires", err)
		wait = min(wait, retry)
	}
	return wait
}

// record puts what is due of a schedule on record and returns its next instant.
func (l *Loop) record(ctx context.Context, m orchestrator.ScheduleMark, now time.Time) (next time.Time, err error) {
	spec, err := l.spec(m.Schedule)
	if err != nil {
		return next, err
	}
	if now.Before(m.Handled) { // the clock was set back: its instants come again
		if err := l.Ledger.SetHandled(ctx, m, now); err != nil {
			return next, err
		}
		m.Handled = now
	}
	if due := spec.Due(m.Handled, now); len(due) > 0 {
		fault.Point(fault.FireDue, m.Schedule.Name)
		if err := l.Ledger.RecordFires(ctx, m, due, now); err != nil {
			return next, err
		}
		fault.Point(fault.FireRecorded, m.Schedule.Name)
	}
	return spec.Next(now), nil
}

func (l *Loop) spec(s orchestrator.Schedule) (Spec, error) {
	key := [2]string{s.Cron, s.Timezone}
	if spec, ok := l.specs[key]; ok {
		return spec, nil
	}
	spec, err := Parse(s.Cron, s.Timezone)
	if err != nil {
		return spec, err
	}
	if l.specs == nil {
		l.specs = map[[2]string]Spec{}
	}
	l.specs[key] = spec
	return spec, nil
}

// start starts the fires that wait for nothing any more, one after the other: a
// fire that starts may keep the next one waiting.
func (l *Loop) start(ctx context.Context) error {
	for {
		f, s, found, err := l.Ledger.NextFire(ctx)
		if err != nil || !found {
			return err
		}
		n, err := l.Prepare(ctx, s)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		fault.Point(fault.FirePrepared, s.Name)
		if err != nil {
			err = l.Ledger.RefuseFire(ctx, f.ID, err)
		} else {
			n.Spec.Schedule, n.By = s.Name, s.CreatedBy
			if f.Manual {
				n.By = f.By
			}
			err = l.Ledger.StartFire(ctx, f.ID, n)
		}
		if err != nil {
			return err
		}
		fault.Point(fault.FireStarted, s.Name)
	}
}

func (l *Loop) complain(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		l.Logger.Error(what, "err", err)
	}
}
