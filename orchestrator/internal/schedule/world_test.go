package schedule

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/ledger"
)

var tester = orchestrator.Peer{UID: 1000, GID: 1000, Name: "tester"}

// Random histories here go through a ledger each: twenty, unless -rapid.checks
// says otherwise.
func init() {
	if err := flag.Set("rapid.checks", "20"); err != nil {
		panic(err)
	}
}

// world is a daemon's ledger and loop over a clock that a test moves.
type world struct {
	t      testing.TB
	now    time.Time
	ledger *ledger.Ledger
	loop   *Loop
	wait   time.Duration // for which the loop sleeps
	refuse error         // why nothing may start, or nil
}

// newWorld begins at an instant. The ledger's own clock is the world's, too.
func newWorld(t testing.TB, now string) *world {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "schedule")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w := &world{t: t, now: at(t, now)}
	w.ledger, err = ledger.Open(t.Context(), filepath.Join(dir, "ledger.db"), ledger.Options{Now: w.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.ledger.Close() })
	for _, name := range []string{"edge", "core"} {
		_, err := w.ledger.AddWorkspace(t.Context(), orchestrator.Workspace{
			Name: name, Dir: "/srv/" + name, Approval: orchestrator.ApprovalDestructive,
		}, tester)
		if err != nil {
			t.Fatal(err)
		}
	}
	w.restart()
	return w
}

func (w *world) Now() time.Time                       { return w.now }
func (w *world) After(time.Duration) <-chan time.Time { panic("nobody sleeps in this world") }

// restart is another daemon over the same ledger. It does not look yet.
func (w *world) restart() {
	w.loop = &Loop{
		Ledger: w.ledger, Clock: w, Logger: slog.New(slog.DiscardHandler),
		Prepare: func(_ context.Context, s orchestrator.Schedule) (orchestrator.NewJob, error) {
			return orchestrator.NewJob{Kind: orchestrator.JobWorkspaceApply, Workspace: s.Workspace}, w.refuse
		},
	}
}

func (w *world) add(name, cron, zone string) {
	w.t.Helper()
	s := orchestrator.Schedule{Name: name, Kind: orchestrator.ScheduleApply, Workspace: "edge", Cron: cron, Timezone: zone}
	if _, err := w.ledger.AddSchedule(w.t.Context(), s, tester); err != nil {
		w.t.Fatal(err)
	}
	w.look()
}

func (w *world) look() {
	w.wait = w.loop.look(w.t.Context())
	w.loop.start(w.t.Context())
	if w.wait <= 0 || w.wait > tick {
		w.t.Fatalf("at %s the loop sleeps for %s", w.now, w.wait)
	}
}

// pass lets time pass with the machine awake, and every job ends at once.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	w.until(w.now.Add(d), func() {
		if w.finish() > 0 {
			w.look()
		}
	})
}

// hold lets time pass while jobs go on.
func (w *world) hold(d time.Duration) {
	w.t.Helper()
	w.until(w.now.Add(d), func() {})
}

// until passes from one instant of a schedule to the next, and looks there: the
// looks between them find nothing.
func (w *world) until(end time.Time, then func()) {
	w.t.Helper()
	for w.now.Before(end) {
		next := end
		marks, err := w.ledger.ScheduleMarks(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		for _, m := range marks {
			if at := parse(w.t, m.Schedule.Cron, m.Schedule.Timezone).Next(w.now); at.Before(next) {
				next = at
			}
		}
		w.now = next
		w.look()
		then()
	}
}

// jump moves the clock alone, forth or back: it was set, or the machine slept.
// The loop notices when its timer ends.
func (w *world) jump(d time.Duration) {
	w.now = w.now.Add(d + w.wait)
	w.look()
}

// finish ends every job that may run, one after the other, and what follows.
func (w *world) finish() (ended int) {
	w.t.Helper()
	for {
		j, err := w.ledger.ClaimJob(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		if j == nil {
			return ended
		}
		if _, err := w.ledger.FinishJob(w.t.Context(), j.ID, j.Attempt.Token, orchestrator.Outcome{}); err != nil {
			w.t.Fatal(err)
		}
		ended++
	}
}

// fires returns what became of a schedule's instants, by instant.
func (w *world) fires(schedule string) []orchestrator.Fire {
	w.t.Helper()
	fires, err := w.ledger.Fires(w.t.Context(), schedule, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	byInstant(fires)
	return fires
}

// want compares `day hour:minute state` of each fire, in UTC.
func (w *world) want(schedule string, want ...string) {
	w.t.Helper()
	var got []string
	for _, f := range w.fires(schedule) {
		got = append(got, f.At.UTC().Format("02 15:04")+" "+string(f.State))
		if (f.Reason == "") != (f.State == orchestrator.FireStarted || f.State == orchestrator.FireWaiting && f.Reason == "") {
			w.t.Errorf("%s of %s is %s for %q", f.At, schedule, f.State, f.Reason)
		}
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		w.t.Errorf("%s: %s\nwant %s", schedule, strings.Join(got, ", "), strings.Join(want, ", "))
	}
}
