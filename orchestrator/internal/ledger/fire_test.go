package ledger

import (
	"strings"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

func applySchedule(name, workspace string) orchestrator.Schedule {
	return orchestrator.Schedule{Name: name, Kind: orchestrator.ScheduleApply, Workspace: workspace, Cron: "0 0 3 * * *"}
}

func addSchedule(t *testing.T, l *Ledger, name, workspace, key string) {
	t.Helper()
	s := applySchedule(name, workspace)
	s.ConcurrencyKey = key
	must(l.AddSchedule(t.Context(), s, tester))(t)
}

// instants of the tests' schedules, a day apart
func day(n int) time.Time { return time.Date(2031, 1, n, 3, 0, 0, 0, time.UTC) }

func record(t *testing.T, l *Ledger, schedule string, due ...orchestrator.DueFire) {
	t.Helper()
	if err := l.RecordFires(t.Context(), markOf(t, l, schedule), due, due[len(due)-1].At); err != nil {
		t.Fatal(err)
	}
}

// markOf reads the mark of a schedule that is not paused.
func markOf(t *testing.T, l *Ledger, schedule string) orchestrator.ScheduleMark {
	t.Helper()
	for _, m := range must(l.ScheduleMarks(t.Context()))(t) {
		if m.Schedule.Name == schedule {
			return m
		}
	}
	t.Fatalf("%s has no mark", schedule)
	return orchestrator.ScheduleMark{}
}

func comes(n int) orchestrator.DueFire {
	return orchestrator.DueFire{At: day(n), State: orchestrator.FireWaiting}
}

// start starts every fire that may be started, as applies.
func start(t *testing.T, l *Ledger) {
	t.Helper()
	for {
		f, s, found, err := l.NextFire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !found {
			return
		}
		n := orchestrator.NewJob{Kind: orchestrator.JobWorkspaceApply, Workspace: s.Workspace, By: tester}
		if err := l.StartFire(t.Context(), f.ID, n); err != nil {
			t.Fatal(err)
		}
	}
}

// wantFires compares states and reasons, the newest first.
func wantFires(t *testing.T, l *Ledger, schedule string, want ...string) []orchestrator.Fire {
	t.Helper()
	fires := must(l.Fires(t.Context(), schedule, 0))(t)
	if len(fires) != len(want) {
		t.Fatalf("%s has %d fires, want %d: %+v", schedule, len(fires), len(want), fires)
	}
	for i, f := range fires {
		state, reason, _ := strings.Cut(want[i], ": ")
		if string(f.State) != state || !strings.Contains(f.Reason, reason) {
			t.Errorf("fire %d of %s is %s: %q, want %q", i, schedule, f.State, f.Reason, want[i])
		}
		if (f.State == orchestrator.FireStarted) != (f.Job != "") || (f.State == orchestrator.FireWaiting) != f.DecidedAt.IsZero() {
			t.Errorf("fire %d of %s does not hold together: %+v", i, schedule, f)
		}
	}
	return fires
}

func TestOneFireWaitsAndFurtherOnesAreCoalesced(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	addSchedule(t, l, "nightly", "edge", "")
	record(t, l, "nightly", comes(1))
	start(t, l)
	job := wantFires(t, l, "nightly", "started")[0].Job
	record(t, l, "nightly", comes(2))
	start(t, l)
	wantFires(t, l, "nightly", "waiting: waits for "+string(job), "started")
	record(t, l, "nightly", comes(3))
	record(t, l, "nightly", comes(3), comes(4))
	start(t, l)
	wantFires(t, l, "nightly", "coalesced: the fire of 2031-01-02 03:00:00Z", "coalesced", "waiting", "started")
	finish(t, l, claim(t, l), failure())
	start(t, l)
	f := wantFires(t, l, "nightly", "coalesced", "coalesced", "started", "started")
	if f[3].JobState != orchestrator.JobFailed || f[3].JobFailure != failure().Failure.Message || f[2].JobState != orchestrator.JobQueued || f[2].JobFailure != "" {
		t.Errorf("jobs are %s for %q, then %s for %q", f[3].JobState, f[3].JobFailure, f[2].JobState, f[2].JobFailure)
	}
	claim(t, l)
	claimNothing(t, l)
}

func TestFiresOfOneKeyNeverOverlap(t *testing.T) {
	for name, c := range map[string]struct{ first, second, key1, key2 string }{
		"one key on two inventories":         {"edge", "core", "k", "k"},
		"no key on one inventory":            {"edge", "edge", "", ""},
		"other keys on one inventory":        {"edge", "edge", "a", "b"},
		"an inventory's name as another key": {"edge", "core", "", "tf:edge"},
		"a key that is another's inventory":  {"edge", "core", "tf:core", ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := openTest(t)
			addWorkspace(t, l, "edge")
			addWorkspace(t, l, "core")
			addSchedule(t, l, "one", c.first, c.key1)
			addSchedule(t, l, "two", c.second, c.key2)
			record(t, l, "one", comes(1))
			record(t, l, "two", comes(1))
			start(t, l)
			wantFires(t, l, "one", "started")
			wantFires(t, l, "two", "waiting: waits behind the fire of schedule one")
			finish(t, l, claim(t, l), orchestrator.Outcome{})
			claimNothing(t, l)
			start(t, l)
			wantFires(t, l, "two", "started")
			finish(t, l, claim(t, l), orchestrator.Outcome{})
		})
	}
}

func TestFiresWithoutACommonKeyGoOnAtOnce(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	addWorkspace(t, l, "core")
	addSchedule(t, l, "one", "edge", "a")
	addSchedule(t, l, "two", "core", "b")
	record(t, l, "one", comes(1))
	record(t, l, "two", comes(1))
	start(t, l)
	claim(t, l)
	claim(t, l)
}

func TestAFireDuringAChainIsSkippedWithItsID(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	addSchedule(t, l, "nightly", "edge", "")
	record(t, l, "nightly", comes(1))
	run := submitRun(t, l, "edge") // after it was recorded, before it is started
	start(t, l)
	record(t, l, "nightly", comes(2))
	start(t, l)
	wantFires(t, l, "nightly", "skipped: "+string(run.ID)+" of workspace edge is not finished", "skipped: "+string(run.ID))
	if jobs := must(l.Jobs(t.Context(), orchestrator.JobFilter{}))(t); len(jobs) != 1 {
		t.Errorf("%d jobs, want the chain's", len(jobs))
	}
}

func TestAnInstantIsOnRecordOnce(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	addSchedule(t, l, "nightly", "edge", "")
	record(t, l, "nightly", orchestrator.DueFire{At: day(1), State: orchestrator.FireMissed, Reason: "late"}, comes(2))
	start(t, l)
	finish(t, l, claim(t, l), orchestrator.Outcome{})
	record(t, l, "nightly", comes(2))
	wantFires(t, l, "nightly", "started", "missed: late")
	// the clock was set back: what was missed comes again, what fired does not
	record(t, l, "nightly", comes(1))
	record(t, l, "nightly", comes(2))
	start(t, l)
	wantFires(t, l, "nightly", "started", "started")
	record(t, l, "nightly", orchestrator.DueFire{At: day(1), State: orchestrator.FireMissed, Reason: "late"})
	wantFires(t, l, "nightly", "started", "started")
}

func TestWhatTheWorkspaceRefusesIsRefused(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	submitJob(t, l, orchestrator.JobWorkspaceApply, "edge")
	lose(t, l)
	addSchedule(t, l, "nightly", "edge", "")
	record(t, l, "nightly", comes(1))
	start(t, l)
	wantFires(t, l, "nightly", "refused: vm.a")
	before := len(must(l.Jobs(t.Context(), orchestrator.JobFilter{}))(t))
	if err := l.RemoveWorkspace(t.Context(), "edge", true, tester); err != nil {
		t.Fatal(err)
	}
	record(t, l, "nightly", comes(2))
	start(t, l)
	wantFires(t, l, "nightly", `refused: there is no workspace "edge"`, "refused")
	if after := len(must(l.Jobs(t.Context(), orchestrator.JobFilter{}))(t)); after != before {
		t.Errorf("%d jobs, want %d", after, before)
	}
	events := must(l.Events(t.Context(), orchestrator.EventFilter{Workspace: "edge"}))(t)
	last := events[len(events)-1]
	if last.Kind != orchestrator.EventFireRefused || !last.Warning || !strings.Contains(last.Message, "schedule nightly") || !strings.Contains(last.Message, `no workspace "edge"`) {
		t.Errorf("the newest event is %+v", last)
	}
}

func TestAWaitingFireEndsWithItsSchedule(t *testing.T) {
	for name, end := range map[string]func(*Ledger) error{
		"paused": func(l *Ledger) error { _, err := l.SetPaused(t.Context(), "nightly", true, tester); return err },
		"changed": func(l *Ledger) error {
			s := applySchedule("nightly", "edge")
			s.Cron = "0 0 4 * * *"
			_, err := l.AddSchedule(t.Context(), s, tester)
			return err
		},
		"removed": func(l *Ledger) error { return l.RemoveSchedule(t.Context(), "nightly", tester) },
	} {
		t.Run(name, func(t *testing.T) {
			l := openTest(t)
			addWorkspace(t, l, "edge")
			addSchedule(t, l, "nightly", "edge", "")
			record(t, l, "nightly", comes(1))
			start(t, l)
			record(t, l, "nightly", comes(2))
			if err := end(l); err != nil {
				t.Fatal(err)
			}
			finish(t, l, claim(t, l), orchestrator.Outcome{})
			start(t, l)
			wantFires(t, l, "nightly", "skipped: the schedule was "+name+" by tester", "started")
		})
	}
}

// Whoever read the mark before a person changed the schedule records nothing of
// the old instants, and leaves the new mark where it is.
func TestAChangeMeanwhileKeepsItsMark(t *testing.T) {
	for name, change := range map[string]func(*Ledger) error{
		"replaced": func(l *Ledger) error {
			s := applySchedule("nightly", "edge")
			s.Cron = "0 0 4 * * *"
			_, err := l.AddSchedule(t.Context(), s, tester)
			return err
		},
		"paused and resumed": func(l *Ledger) error {
			_, err := l.SetPaused(t.Context(), "nightly", true, tester)
			if err == nil {
				_, err = l.SetPaused(t.Context(), "nightly", false, tester)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := openTest(t)
			addWorkspace(t, l, "edge")
			addSchedule(t, l, "nightly", "edge", "")
			read := markOf(t, l, "nightly")
			if err := change(l); err != nil {
				t.Fatal(err)
			}
			changed := markOf(t, l, "nightly")
			if err := l.RecordFires(t.Context(), read, []orchestrator.DueFire{comes(1)}, day(1)); err != nil {
				t.Fatal(err)
			}
			if err := l.SetHandled(t.Context(), read, read.Handled.Add(-time.Hour)); err != nil {
				t.Fatal(err)
			}
			wantFires(t, l, "nightly")
			if now := markOf(t, l, "nightly"); !now.Handled.Equal(changed.Handled) || changed.Handled.Equal(read.Handled) {
				t.Errorf("read at %s and changed at %s, its mark is %s", read.Handled, changed.Handled, now.Handled)
			}
		})
	}
}

// The fire of a schedule that is gone keeps its key until its job has ended.
func TestAKeyOutlivesItsSchedule(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	addWorkspace(t, l, "core")
	addSchedule(t, l, "one", "edge", "k")
	addSchedule(t, l, "two", "core", "k")
	record(t, l, "one", comes(1))
	start(t, l)
	if err := l.RemoveSchedule(t.Context(), "one", tester); err != nil {
		t.Fatal(err)
	}
	record(t, l, "two", comes(1))
	start(t, l)
	wantFires(t, l, "two", "waiting: of schedule one")
}

func TestRunNow(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	addSchedule(t, l, "nightly", "edge", "")
	must(l.SetPaused(t.Context(), "nightly", true, tester))(t)
	ask := orchestrator.RunSchedule{Key: "k1", Schedule: "nightly", At: day(1), By: tester}
	f := must(l.RunSchedule(t.Context(), ask))(t)
	if again := must(l.RunSchedule(t.Context(), ask))(t); again.ID != f.ID || !f.Manual || f.By != tester {
		t.Errorf("asked twice: %+v, then %+v", f, again)
	}
	start(t, l)
	ask.Key = "k2" // the same instant, for a clock that stands still
	must(l.RunSchedule(t.Context(), ask))(t)
	ask.Key = "k3"
	must(l.RunSchedule(t.Context(), ask))(t)
	wantFires(t, l, "nightly", "coalesced", "waiting", "started")
	_, err := l.RunSchedule(t.Context(), orchestrator.RunSchedule{Key: "k4", Schedule: "other", At: day(1)})
	wantCode(t, err, orchestrator.CodeNotFound, `no schedule "other"`)
	addSchedule(t, l, "other", "edge", "")
	_, err = l.RunSchedule(t.Context(), orchestrator.RunSchedule{Key: "k1", Schedule: "other", At: day(1)})
	wantCode(t, err, orchestrator.CodeConflict)
}

// A key that is taken between the look and the start is taken.
func TestAKeyThatIsTakenMeanwhileIsWaitedFor(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	addWorkspace(t, l, "core")
	addSchedule(t, l, "one", "edge", "k")
	addSchedule(t, l, "two", "core", "k")
	record(t, l, "one", comes(1))
	start(t, l)
	j := claim(t, l)
	must(l.InterruptJob(t.Context(), j.ID, j.Attempt.Token, "the machine went down", true))(t)
	record(t, l, "two", comes(1))
	f, _, _, err := l.NextFire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	must(l.RedriveJob(t.Context(), j.ID, tester))(t)
	n := orchestrator.NewJob{Kind: orchestrator.JobWorkspaceApply, Workspace: "core", By: tester}
	if err := l.StartFire(t.Context(), f.ID, n); err != nil {
		t.Fatal(err)
	}
	again := claim(t, l)
	// who asked for it is answered with that, and does not wait for the end
	wantFires(t, l, "two", "waiting: waits for "+string(again.ID))
	finish(t, l, again, orchestrator.Outcome{})
	start(t, l)
	wantFires(t, l, "two", "started")
}

// An interrupted job of a fire that is redriven has the fire's keys again.
func TestARedrivenJobKeepsItsFiresKeys(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	addWorkspace(t, l, "core")
	addSchedule(t, l, "one", "edge", "k")
	addSchedule(t, l, "two", "core", "k")
	record(t, l, "one", comes(1))
	start(t, l)
	j := claim(t, l)
	must(l.InterruptJob(t.Context(), j.ID, j.Attempt.Token, "the machine went down", true))(t)
	record(t, l, "two", comes(1))
	start(t, l)
	_, err := l.RedriveJob(t.Context(), j.ID, tester)
	wantCode(t, err, orchestrator.CodeConflict, "goes on")
	finish(t, l, claim(t, l), orchestrator.Outcome{})
	again := must(l.RedriveJob(t.Context(), j.ID, tester))(t)
	if f := wantFires(t, l, "one", "started")[0]; f.Job != again.ID {
		t.Errorf("the fire's job is %s, want %s", f.Job, again.ID)
	}
	record(t, l, "two", comes(2))
	start(t, l)
	wantFires(t, l, "two", "waiting: waits for "+string(again.ID), "started")
}

func TestPruneFires(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	addSchedule(t, l, "nightly", "edge", "")
	missed := func(n int) orchestrator.DueFire {
		return orchestrator.DueFire{At: day(n), State: orchestrator.FireMissed, Reason: "late"}
	}
	record(t, l, "nightly", missed(1), comes(2))
	start(t, l)
	record(t, l, "nightly", missed(3), missed(4))
	if err := l.PruneFires(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	wantFires(t, l, "nightly", "missed", "started") // the newest, and the one that goes on
	if err := l.RemoveSchedule(t.Context(), "nightly", tester); err != nil {
		t.Fatal(err)
	}
	if err := l.PruneFires(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	wantFires(t, l, "nightly", "started")
}
