package ledger

import (
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

func TestTheNewestEventsOfAFilter(t *testing.T) {
	l := openTest(t)
	for _, name := range []string{"edge", "lab"} {
		addWorkspace(t, l, name)
		submitRun(t, l, name)
	}
	all := must(l.Events(t.Context(), orchestrator.EventFilter{Workspace: "edge"}))(t)
	if len(all) < 3 {
		t.Fatalf("only %d events", len(all))
	}
	for newest, want := range map[int][]orchestrator.Event{1: all[len(all)-1:], 2: all[len(all)-2:], 999: all, 0: all} {
		got := must(l.Events(t.Context(), orchestrator.EventFilter{Workspace: "edge", Newest: newest}))(t)
		if len(got) != len(want) || got[0].ID != want[0].ID || got[len(got)-1].ID != want[len(want)-1].ID {
			t.Errorf("the newest %d: %+v\nwant %+v", newest, got, want)
		}
	}
	page := must(l.Events(t.Context(), orchestrator.EventFilter{Workspace: "edge", Newest: 2, Limit: 1}))(t)
	if len(page) != 1 || page[0].ID != all[len(all)-2].ID {
		t.Errorf("the first of the newest two: %+v", page)
	}
	if none := must(l.Events(t.Context(), orchestrator.EventFilter{Workspace: "none", Newest: 2}))(t); len(none) != 0 {
		t.Errorf("of nothing: %+v", none)
	}
}
