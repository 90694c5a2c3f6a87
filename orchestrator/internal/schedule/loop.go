package schedule

import (
	"context"
	"log/slog"
	"sync"
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
	// prepareFor is how long a schedule may be looked at before it starts; one that
	// hangs longer, on a mount or a backend, is refused.
	prepareFor = 2 * time.Minute
)

// Loop makes the fires of all schedules. Every field must be set.
type Loop struct {
	Ledger Ledger
	// Prepare returns the job that a schedule starts now, or the error that says
	// why it starts none. It changes nothing that counts.
	Prepare func(ctx context.Context, s orchestrator.Schedule) (orchestrator.NewJob, error)
	Clock   Clock
	Logger  *slog.Logger

	specs map[[2]string]Spec // by expression and zone; of the marks that were read last

	preparing map[string]<-chan struct{} // by schedule: closed when its Prepare has returned

	mu   sync.Mutex
	said map[string]string // guarded by mu: the error that was logged last, by what failed
}

// Run makes fires until ctx ends. One service puts instants on record and one
// starts what waits: however long that takes, no instant is missed for it.
func (l *Loop) Run(ctx context.Context) error {
	var g sync.WaitGroup
	g.Go(func() { l.repeat(ctx, l.look) })
	g.Go(func() { l.repeat(ctx, l.start) })
	g.Wait()
	return nil
}

// repeat calls do until ctx ends. It sleeps as long as that says (until the next
// instant, or the tick) or until a change of the ledger (a schedule, or the end
// of a job for which a fire waits), whatever comes first.
func (l *Loop) repeat(ctx context.Context, do func(context.Context) time.Duration) {
	for {
		changed := l.Ledger.Changed()
		wait := do(ctx)
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-l.Clock.After(wait):
		}
	}
}

// look records what is due and returns how long there is nothing to do.
func (l *Loop) look(ctx context.Context) time.Duration {
	marks, err := l.Ledger.ScheduleMarks(ctx)
	if l.complains(ctx, "read schedules", err) {
		return retry
	}
	now, wait := l.Clock.Now(), tick
	used := map[[2]string]Spec{}
	for _, m := range marks {
		next, err := l.record(ctx, m, now, used)
		if l.complains(ctx, "record fires of schedule "+m.Schedule.Name, err) {
			wait = min(wait, retry)
		} else if !next.IsZero() {
			wait = min(wait, next.Sub(now))
		}
	}
	l.specs = used
	return wait
}

// record puts what is due of a schedule on record and returns its next instant.
func (l *Loop) record(
	ctx context.Context, m orchestrator.ScheduleMark, now time.Time, used map[[2]string]Spec,
) (next time.Time, err error) {
	spec, err := l.spec(m.Schedule, used)
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

// spec reads what a schedule's instants are, once as long as it is in use.
func (l *Loop) spec(s orchestrator.Schedule, used map[[2]string]Spec) (spec Spec, err error) {
	key := [2]string{s.Cron, s.Timezone}
	spec, ok := l.specs[key]
	if !ok {
		spec, err = Parse(s.Cron, s.Timezone)
	}
	if err == nil {
		used[key] = spec
	}
	return spec, err
}

// start starts the fires that wait for nothing any more, one after the other: a
// fire that starts may keep the next one waiting. It returns when to look again.
func (l *Loop) start(ctx context.Context) time.Duration {
	for {
		f, s, found, err := l.Ledger.NextFire(ctx)
		if err == nil && found {
			err = l.startFire(ctx, f, s)
		}
		if l.complains(ctx, "start fires", err) {
			return retry
		}
		if !found || ctx.Err() != nil {
			return tick
		}
	}
}

func (l *Loop) startFire(ctx context.Context, f orchestrator.Fire, s orchestrator.Schedule) error {
	n, err := l.prepare(ctx, s)
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
	if err == nil {
		fault.Point(fault.FireStarted, s.Name)
	}
	return err
}

// prepare calls Prepare and waits for it no longer than prepareFor, also where it
// does not hear of its context's end. Until that one has returned, no other is
// begun for the schedule.
func (l *Loop) prepare(ctx context.Context, s orchestrator.Schedule) (orchestrator.NewJob, error) {
	type answer struct {
		job orchestrator.NewJob
		err error
	}
	hangs := orchestrator.Errorf(orchestrator.CodeRefused, "looking at what schedule %s starts takes longer than %s", s.Name, prepareFor).
		WithHint("look whether the file systems and backends that it names answer")
	if before, ok := l.preparing[s.Name]; ok {
		select {
		case <-before:
			delete(l.preparing, s.Name)
		default:
			return orchestrator.NewJob{}, hangs
		}
	}
	bounded, cancel := context.WithTimeout(ctx, prepareFor)
	defer cancel()
	answers, done := make(chan answer, 1), make(chan struct{})
	go func() {
		defer close(done)
		job, err := l.Prepare(bounded, s)
		answers <- answer{job, err}
	}()
	select {
	case a := <-answers:
		return a.job, a.err
	case <-bounded.Done():
		if l.preparing == nil {
			l.preparing = map[string]<-chan struct{}{}
		}
		l.preparing[s.Name] = done
		return orchestrator.NewJob{}, hangs
	}
}

// complains reports whether something failed, and logs an error that is not the
// one that was logged last: what lasts is said once.
func (l *Loop) complains(ctx context.Context, what string, err error) bool {
	if ctx.Err() != nil {
		return err != nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		delete(l.said, what)
		return false
	}
	if text := err.Error(); l.said[what] != text {
		l.Logger.Error(what, "err", err)
		if l.said == nil {
			l.said = map[string]string{}
		}
		l.said[what] = text
	}
	return true
}
