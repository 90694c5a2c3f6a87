package ledger

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/exocomp/exocomp/orchestrator"
)

func playSchedule() orchestrator.Schedule {
	return orchestrator.Schedule{
		Name: "nightly", Kind: orchestrator.SchedulePlay, Workspace: "edge", Cron: "0 0 3 * * *", Timezone: "Europe/Berlin",
		ConcurrencyKey: "fleet", Playbook: "/srv/play/site.yml", Args: []string{"--diff"}, Egress: []int{443},
		SSHIdentities: []string{"/k"}, NoAdmit: true, KeepGoing: true,
	}
}

func TestASchedulesSettingsAreKept(t *testing.T) {
	l := openTest(t)
	addWorkspace(t, l, "edge")
	added := must(l.AddSchedule(t.Context(), playSchedule(), tester))(t)
	want := playSchedule()
	want.CreatedBy, want.CreatedAt, want.UpdatedAt = tester, added.CreatedAt, added.CreatedAt
	if diff := cmp.Diff([]orchestrator.Schedule{want}, must(l.Schedules(t.Context()))(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if mark := must(l.ScheduleMarks(t.Context()))(t)[0]; !mark.Handled.Equal(added.CreatedAt) {
		t.Errorf("its instants count from %s, want %s", mark.Handled, added.CreatedAt)
	}

	before := must(l.LastEventID(t.Context()))(t)
	must(l.AddSchedule(t.Context(), playSchedule(), tester))(t)
	if after := must(l.LastEventID(t.Context()))(t); after != before {
		t.Error("adding the same again changed something")
	}
	read := markOf(t, l, "nightly")
	must(l.SetPaused(t.Context(), "nightly", true, tester))(t)
	other := playSchedule()
	other.Args = nil
	if s := must(l.AddSchedule(t.Context(), other, tester))(t); !s.Paused || s.Args != nil || !s.CreatedAt.Equal(added.CreatedAt) {
		t.Errorf("changed to %+v", s)
	}
	if marks := must(l.ScheduleMarks(t.Context()))(t); len(marks) != 0 {
		t.Errorf("a paused schedule is looked at: %+v", marks)
	}
	if err := l.RecordFires(t.Context(), read, []orchestrator.DueFire{comes(1)}, day(1)); err != nil {
		t.Fatal(err)
	}
	wantFires(t, l, "nightly")
	resumed := must(l.SetPaused(t.Context(), "nightly", false, tester))(t)
	if mark := must(l.ScheduleMarks(t.Context()))(t)[0]; !mark.Handled.Equal(resumed.UpdatedAt) {
		t.Errorf("its instants count from %s, want from when it was resumed, %s", mark.Handled, resumed.UpdatedAt)
	}
	back := resumed.UpdatedAt.Add(-time.Hour)
	if err := l.SetHandled(t.Context(), markOf(t, l, "nightly"), back); err != nil {
		t.Fatal(err)
	}
	if mark := must(l.ScheduleMarks(t.Context()))(t)[0]; !mark.Handled.Equal(back) {
		t.Errorf("the mark is %s, want %s", mark.Handled, back)
	}
}

func TestAScheduleNamesARegisteredWorkspace(t *testing.T) {
	l := openTest(t)
	_, err := l.AddSchedule(t.Context(), playSchedule(), tester)
	wantCode(t, err, orchestrator.CodeNotFound, `no workspace "edge"`)
	for name, err := range map[string]error{
		"show":   func() error { _, err := l.Schedule(t.Context(), "nightly"); return err }(),
		"pause":  func() error { _, err := l.SetPaused(t.Context(), "nightly", true, tester); return err }(),
		"remove": l.RemoveSchedule(t.Context(), "nightly", tester),
	} {
		t.Run(name, func(t *testing.T) { wantCode(t, err, orchestrator.CodeNotFound, `no schedule "nightly"`) })
	}
}
