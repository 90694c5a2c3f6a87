package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/exocomp/exocomp/orchestrator"
)

func byInstant(fires []orchestrator.Fire) {
	slices.SortFunc(fires, func(a, b orchestrator.Fire) int { return a.At.Compare(b.At) })
}

// Two days around each change of the clock, in three zones.
func TestDaylightSavingDaysFireOnceADay(t *testing.T) {
	for name, c := range map[string]struct{ zone, from, daily, first, second string }{
		"Berlin, spring":    {"Europe/Berlin", "2026-03-28T12:00:00Z", "0 30 2 * * *", "29 01:00", "30 00:30"},
		"Berlin, autumn":    {"Europe/Berlin", "2026-10-24T12:00:00Z", "0 30 2 * * *", "25 00:30", "26 01:30"},
		"New York, spring":  {"America/New_York", "2026-03-07T12:00:00Z", "0 30 2 * * *", "08 07:00", "09 06:30"},
		"New York, autumn":  {"America/New_York", "2026-10-31T12:00:00Z", "0 30 1 * * *", "01 05:30", "02 06:30"},
		"Lord Howe, spring": {"Australia/Lord_Howe", "2026-10-03T06:00:00Z", "0 15 2 * * *", "03 15:30", "04 15:15"},
		"Lord Howe, autumn": {"Australia/Lord_Howe", "2026-04-04T06:00:00Z", "0 45 1 * * *", "04 14:45", "05 15:15"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.from)
			w.add("daily", c.daily, c.zone)
			w.pass(48 * time.Hour)
			w.want("daily", c.first+" started", c.second+" started")
		})
	}
}

func TestASuspendOfTenHours(t *testing.T) {
	w := newWorld(t, "2026-01-01T00:00:00Z")
	w.add("threehourly", "0 0 */3 * * *", "UTC")
	w.pass(3*time.Hour + 10*time.Minute)
	w.jump(10 * time.Hour)
	w.pass(2 * time.Hour)
	w.want("threehourly", "01 03:00 started", "01 06:00 missed", "01 09:00 missed", "01 12:00 missed", "01 15:00 started")
	for _, f := range w.fires("threehourly") {
		if f.State == orchestrator.FireMissed && !strings.Contains(f.Reason, "late, more than 1m0s") {
			t.Errorf("%s was missed for %q", f.At, f.Reason)
		}
	}
}

func TestTheClockIsSet(t *testing.T) {
	for name, c := range map[string]struct {
		jumps []time.Duration
		want  []string
	}{
		// 03:00 fires; from 03:30 back to 02:30, 03:00 comes again
		"back an hour":           {[]time.Duration{-time.Hour}, []string{"01 03:00 started", "01 04:00 started", "01 05:00 started"}},
		"forward an hour":        {[]time.Duration{time.Hour}, []string{"01 03:00 started", "01 04:00 missed", "01 05:00 started", "01 06:00 started", "01 07:00 started"}},
		"forward, and back":      {[]time.Duration{time.Hour, -time.Hour}, []string{"01 03:00 started", "01 04:00 started", "01 05:00 started", "01 06:00 started"}},
		"back, and forward":      {[]time.Duration{-time.Hour, time.Hour}, []string{"01 03:00 started", "01 04:00 started", "01 05:00 started", "01 06:00 started"}},
		"a year off for a while": {[]time.Duration{24 * 365 * time.Hour, -24 * 365 * time.Hour}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "2026-01-01T02:30:00Z")
			w.add("hourly", "0 0 * * * *", "UTC")
			w.pass(time.Hour)
			for _, j := range c.jumps {
				w.jump(j)
				w.finish()
			}
			w.pass(2*time.Hour + 45*time.Minute)
			if c.want != nil {
				w.want("hourly", c.want...)
				return
			}
			started := 0
			for _, f := range w.fires("hourly") {
				if f.State == orchestrator.FireStarted && f.At.Before(w.now) {
					started++
				}
			}
			if started != 4 {
				t.Errorf("%d instants of this year fired, want 03:00 to 06:00", started)
			}
		})
	}
}

func TestARestartExactlyAtTheInstant(t *testing.T) {
	w := newWorld(t, "2026-01-01T02:59:00Z")
	w.add("nightly", "0 0 3 * * *", "UTC")
	w.now = at(t, "2026-01-01T03:00:00Z") // the daemon before has not looked any more
	for range 2 {
		w.restart()
		w.look()
		w.want("nightly", "01 03:00 started")
	}
	if n := w.finish(); n != 1 {
		t.Errorf("%d jobs, want one", n)
	}
}

func TestARestartAfterTheInstant(t *testing.T) {
	for after, want := range map[time.Duration]string{
		time.Nanosecond:               "01 03:00 started",
		time.Minute:                   "01 03:00 started",
		time.Minute + time.Nanosecond: "01 03:00 missed",
	} {
		w := newWorld(t, "2026-01-01T02:59:00Z")
		w.add("nightly", "0 0 3 * * *", "UTC")
		w.now = at(t, "2026-01-01T03:00:00Z").Add(after)
		w.restart()
		w.look()
		w.want("nightly", want)
	}
}

// A daemon that dies between the record of a fire and its start leaves it to the
// next one, however late that comes.
func TestAFireOnRecordSurvivesTheDaemon(t *testing.T) {
	w := newWorld(t, "2026-01-01T02:59:00Z")
	w.add("nightly", "0 0 3 * * *", "UTC")
	due := []orchestrator.DueFire{{At: at(t, "2026-01-01T03:00:00Z"), State: orchestrator.FireWaiting}}
	marks, err := w.ledger.ScheduleMarks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.ledger.RecordFires(t.Context(), marks[0], due, due[0].At); err != nil {
		t.Fatal(err)
	}
	w.now = at(t, "2026-01-01T09:00:00Z")
	w.restart()
	w.look()
	w.want("nightly", "01 03:00 started")
}

func TestTwoTicksDuringOneLongJob(t *testing.T) {
	w := newWorld(t, "2026-01-01T02:30:00Z")
	w.add("hourly", "0 0 * * * *", "UTC")
	w.hold(3 * time.Hour)
	w.want("hourly", "01 03:00 started", "01 04:00 waiting", "01 05:00 coalesced")
	w.finish()
	w.look() // as the end of the job wakes it
	w.want("hourly", "01 03:00 started", "01 04:00 started", "01 05:00 coalesced")
	if n := w.finish(); n != 1 {
		t.Errorf("%d jobs after the long one, want one", n)
	}
}

func TestTwoTicksDuringOneLongChain(t *testing.T) {
	w := newWorld(t, "2026-01-01T02:30:00Z")
	w.add("hourly", "0 0 * * * *", "UTC")
	play := orchestrator.PlaybookRef{Entry: "site.yml", Digest: "sha256:" + strings.Repeat("a", 64)}
	run, _, err := w.ledger.SubmitRun(t.Context(), orchestrator.NewRun{
		Kind: orchestrator.RunProvision, Workspace: "edge", Spec: orchestrator.RunSpec{Playbook: play, SSHWait: time.Minute}, By: tester,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.hold(2 * time.Hour)
	w.want("hourly", "01 03:00 skipped", "01 04:00 skipped")
	for _, f := range w.fires("hourly") {
		if !strings.Contains(f.Reason, string(run.ID)) {
			t.Errorf("skipped for %q, which does not name %s", f.Reason, run.ID)
		}
	}
}

func TestARefusalNamesItsReasonAndQueuesNothing(t *testing.T) {
	w := newWorld(t, "2026-01-01T02:30:00Z")
	w.add("hourly", "0 0 * * * *", "UTC")
	w.refuse = orchestrator.Errorf(orchestrator.CodeRefused, "tf:edge names no hosts")
	w.hold(time.Hour)
	w.want("hourly", "01 03:00 refused")
	if f := w.fires("hourly")[0]; !strings.Contains(f.Reason, "tf:edge names no hosts") || w.finish() != 0 {
		t.Errorf("refused for %q", f.Reason)
	}
	w.refuse = nil
	w.hold(time.Hour)
	w.want("hourly", "01 03:00 refused", "01 04:00 started")
}

// Whatever happens to clock, machine, daemon and jobs: an instant that the clock
// passed is on record once, and as many jobs were queued as fires started.
func TestEveryInstantIsOnRecordOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, "2026-01-01T02:30:00Z")
		w.add("hourly", "0 0 * * * *", "UTC")
		passed := map[time.Time]bool{}
		lowest := w.now
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			from := w.now
			d := time.Duration(rapid.IntRange(1, 40).Draw(rt, "quarters")) * 15 * time.Minute
			switch rapid.SampledFrom([]string{"pass", "hold", "sleep", "back", "restart", "finish"}).Draw(rt, "what") {
			case "pass":
				w.pass(d)
			case "hold":
				w.hold(d)
			case "sleep":
				w.jump(d)
			case "back":
				w.jump(-d)
			case "restart":
				w.now = w.now.Add(d / 10)
				w.restart()
				w.look()
			case "finish":
				w.finish()
				w.look()
			}
			for h := from.Truncate(time.Hour).Add(time.Hour); !h.After(w.now); h = h.Add(time.Hour) {
				passed[h] = true
			}
			if w.now.Before(lowest) {
				lowest = w.now
			}
		}
		started, seen := 0, map[time.Time]bool{}
		for _, f := range w.fires("hourly") {
			if seen[f.At] || !f.At.Equal(f.At.Truncate(time.Hour)) {
				rt.Errorf("%s is on record twice, or no instant", f.At)
			}
			seen[f.At] = true
			if f.State == orchestrator.FireStarted {
				started++
			}
		}
		for h := range passed {
			if !seen[h] {
				rt.Errorf("%s passed and is not on record", h)
			}
		}
		jobs, err := w.ledger.Jobs(t.Context(), orchestrator.JobFilter{})
		if err != nil || len(jobs) != started {
			rt.Errorf("%d jobs for %d fires (%v)", len(jobs), started, err)
		}
	})
}

// diary is a ledger that notes when it is looked at.
type diary struct {
	Ledger
	mark    orchestrator.ScheduleMark
	fails   int
	mu      sync.Mutex
	changed chan struct{} // guarded by mu
	looks   []time.Duration
	fires   []time.Duration
	begin   time.Time
}

func (d *diary) Changed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

// wake is a change of the ledger.
func (d *diary) wake() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.changed)
	d.changed = make(chan struct{})
}

func (d *diary) ScheduleMarks(context.Context) ([]orchestrator.ScheduleMark, error) {
	d.looks = append(d.looks, time.Since(d.begin))
	if d.fails > 0 {
		d.fails--
		return nil, errors.New("disk full")
	}
	return []orchestrator.ScheduleMark{d.mark}, nil
}

func (d *diary) RecordFires(_ context.Context, _ orchestrator.ScheduleMark, _ []orchestrator.DueFire, mark time.Time) error {
	d.mark.Handled = mark
	d.fires = append(d.fires, time.Since(d.begin))
	return nil
}

func (d *diary) NextFire(context.Context) (f orchestrator.Fire, s orchestrator.Schedule, found bool, err error) {
	return f, s, false, nil
}

func TestTheLoopSleepsUntilSomethingMayHappen(t *testing.T) {
	for name, c := range map[string]struct {
		cron         string
		fails        int
		change       time.Duration
		looks, fires string
	}{
		"an instant":           {"0 1 * * * *", 0, 0, "0s 30s 1m0s 1m30s", "1m0s"},
		"an instant before":    {"10 * * * * *", 0, 0, "0s 10s 40s 1m10s 1m40s", "10s 1m10s"},
		"a change":             {"0 0 3 * * *", 0, 5 * time.Second, "0s 5s 35s 1m5s 1m35s", ""},
		"a ledger that failed": {"0 0 3 * * *", 2, 0, "0s 10s 20s 50s 1m20s", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			now := time.Now().UTC().Truncate(time.Minute) // the bubble's midnight
			d := &diary{
				begin: time.Now(), fails: c.fails, changed: make(chan struct{}),
				mark: orchestrator.ScheduleMark{Schedule: orchestrator.Schedule{Name: "x", Cron: c.cron, Timezone: "UTC"}, Handled: now},
			}
			ctx, stop := context.WithTimeout(t.Context(), 109*time.Second)
			defer stop()
			if c.change > 0 {
				time.AfterFunc(c.change, d.wake)
			}
			l := &Loop{Ledger: d, Clock: WallClock{}, Logger: slog.New(slog.DiscardHandler)}
			if err := l.Run(ctx); err != nil {
				t.Fatal(err)
			}
			said := func(all []time.Duration) string { return strings.Trim(fmt.Sprint(all), "[]") }
			if said(d.looks) != c.looks || said(d.fires) != c.fires {
				t.Errorf("%s: looked at %s and fired at %s, want %s and %s", name, said(d.looks), said(d.fires), c.looks, c.fires)
			}
		})
	}
}

// hanging is a diary whose one fire waits until it is refused.
type hanging struct {
	*diary
	refused string
}

func (h *hanging) NextFire(context.Context) (orchestrator.Fire, orchestrator.Schedule, bool, error) {
	return orchestrator.Fire{ID: 1}, orchestrator.Schedule{Name: "slow"}, h.refused == "", nil
}

func (h *hanging) RefuseFire(_ context.Context, _ int64, why error) error {
	h.refused = fmt.Sprintf("%s: %s", time.Since(h.begin), why)
	return nil
}

// A workspace that does not answer keeps nobody's instants from being recorded,
// and its own fire is refused in the end.
func TestWhatHangsKeepsNoInstantWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now().UTC().Truncate(time.Minute)
		h := &hanging{diary: &diary{
			begin: time.Now(), changed: make(chan struct{}),
			mark: orchestrator.ScheduleMark{Schedule: orchestrator.Schedule{Name: "x", Cron: "0 * * * * *", Timezone: "UTC"}, Handled: now},
		}}
		release := make(chan struct{})
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute+time.Second)
		defer stop()
		l := &Loop{Ledger: h, Clock: WallClock{}, Logger: slog.New(slog.DiscardHandler)}
		l.Prepare = func(context.Context, orchestrator.Schedule) (n orchestrator.NewJob, err error) {
			<-release // a mount that is gone knows of no context
			return n, nil
		}
		if err := l.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(h.fires); got != "[1m0s 2m0s 3m0s]" {
			t.Errorf("recorded at %s", got)
		}
		if !strings.HasPrefix(h.refused, "2m0s: ") || !strings.Contains(h.refused, "schedule slow") {
			t.Errorf("refused %q", h.refused)
		}
		before := time.Now()
		if _, err := l.prepare(t.Context(), orchestrator.Schedule{Name: "slow"}); !errors.Is(err, orchestrator.ErrRefused) || time.Since(before) > 0 {
			t.Errorf("looked at a second time while the first goes on: %v", err)
		}
		close(release)
		synctest.Wait()
		if _, err := l.prepare(t.Context(), orchestrator.Schedule{Name: "slow"}); err != nil {
			t.Error(err)
		}
	})
}

// An error that lasts is logged once, whatever wakes the loop, and again after
// something went well; a schedule that is gone leaves nothing behind.
func TestALastingErrorIsLoggedOnce(t *testing.T) {
	var log strings.Builder
	d := &diary{mark: orchestrator.ScheduleMark{Schedule: orchestrator.Schedule{Name: "x", Cron: "0 0 3 * * *", Timezone: "UTC"}, Handled: time.Now()}}
	l := &Loop{Ledger: d, Clock: WallClock{}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	for range 2 {
		d.fails = 3
		for range 4 {
			l.look(t.Context())
		}
	}
	if n := strings.Count(log.String(), "disk full"); n != 2 {
		t.Errorf("logged %d times, want once for each time that it lasted: %s", n, &log)
	}
	d.mark.Schedule.Cron = "0 0 4 * * *"
	l.look(t.Context())
	if len(l.specs) != 1 {
		t.Errorf("%d expressions are kept of one schedule", len(l.specs))
	}
}
