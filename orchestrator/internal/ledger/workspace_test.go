package ledger

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/exocomp/exocomp/orchestrator"
)

func TestAddingAWorkspaceTwice(t *testing.T) {
	l := openTest(t)
	w := orchestrator.Workspace{
		Name:          "edge",
		Dir:           "/srv/edge",
		TofuWorkspace: "blue",
		VarFiles:      []string{"/srv/a.tfvars", "/srv/b.tfvars"},
		BackendConfig: []string{"key=value"},
		CLIConfig:     "/etc/tofurc",
		Approval:      orchestrator.ApprovalAlways,
	}
	first := must(l.AddWorkspace(t.Context(), w, tester))(t)
	again := must(l.AddWorkspace(t.Context(), w, tester))(t)
	read := must(l.Workspace(t.Context(), "edge"))(t)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the second answer differs (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(first, read); diff != "" {
		t.Errorf("read back (-added +read):\n%s", diff)
	}
	for name, change := range map[string]func(*orchestrator.Workspace){
		"dir":       func(w *orchestrator.Workspace) { w.Dir = "/srv/other" },
		"tofu":      func(w *orchestrator.Workspace) { w.TofuWorkspace = "" },
		"var files": func(w *orchestrator.Workspace) { w.VarFiles = nil },
		"backend":   func(w *orchestrator.Workspace) { w.BackendConfig = nil },
		"cli":       func(w *orchestrator.Workspace) { w.CLIConfig = "" },
		"approval":  func(w *orchestrator.Workspace) { w.Approval = orchestrator.ApprovalNever },
		"watch":     func(w *orchestrator.Workspace) { w.Watch = true },
	} {
		other := w
		change(&other)
		changed := must(l.AddWorkspace(t.Context(), other, tester))(t)
		read := must(l.Workspace(t.Context(), "edge"))(t)
		if diff := cmp.Diff(changed, read); diff != "" || sameWorkspace(read, w) || !sameWorkspace(read, other) {
			t.Errorf("another %s: read back %+v", name, read)
		}
		if !read.CreatedAt.Equal(first.CreatedAt) {
			t.Errorf("another %s: created at %v, want %v", name, read.CreatedAt, first.CreatedAt)
		}
		must(l.AddWorkspace(t.Context(), w, tester))(t)
	}
	if events := must(l.Events(t.Context(), orchestrator.EventFilter{Workspace: "edge"}))(t); len(events) != 15 {
		t.Errorf("%d events, want 15", len(events))
	}
}

func TestRemovingAWorkspace(t *testing.T) {
	l := twoAdmitted(t)
	run := submitRun(t, l, "edge")
	err := l.RemoveWorkspace(t.Context(), "edge", false, tester)
	wantCode(t, err, orchestrator.CodeConflict, string(run.ID))
	lose(t, l)
	if err := l.RemoveWorkspace(t.Context(), "edge", true, tester); err != nil {
		t.Fatal(err)
	}
	_, err = l.Workspace(t.Context(), "edge")
	wantCode(t, err, orchestrator.CodeNotFound, "exocomp workspace list")
	wantCode(t, l.RemoveWorkspace(t.Context(), "edge", false, tester), orchestrator.CodeNotFound)
	if got := admitted(t, l, "edge") + "/" + admitted(t, l, "other"); got != "/app " {
		t.Errorf("admitted %q, want other's app alone", got)
	}
	if all := must(l.Inventories(t.Context()))(t); len(all) != 1 || all[0].Workspace != "other" {
		t.Errorf("inventories %+v, want other's", all)
	}
	if pins := must(l.Pins(t.Context(), orchestrator.PinFilter{}))(t); len(pins) != 1 || len(pins[0].Users) != 1 {
		t.Errorf("live pins %+v, want the shared one", pins)
	}
	if _, err := l.Run(t.Context(), run.ID); err != nil {
		t.Errorf("history is gone: %v", err)
	}
	addWorkspace(t, l, "edge")
	if w := must(l.Workspace(t.Context(), "edge"))(t); len(w.Lost) != 0 {
		t.Errorf("the new workspace inherits lost creates %v", w.Lost)
	}
	submitRun(t, l, "edge")
}

func TestAStartTellsHowTheDaemonBeforeEnded(t *testing.T) {
	l := openTest(t)
	for i, c := range []struct{ stop, clean bool }{{false, true}, {true, false}, {false, true}, {false, false}} {
		if clean := must(l.StartDaemon(t.Context(), "v1", 7))(t); clean != c.clean {
			t.Errorf("start %d: clean %v, want %v", i, clean, c.clean)
		}
		if c.stop {
			if err := l.StopDaemon(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestSealedValuesAreReplaced(t *testing.T) {
	l := openTest(t)
	_, err := l.Sealed(t.Context(), "fleet-key", "private")
	wantCode(t, err, orchestrator.CodeNotFound, "fleet-key")
	for _, text := range []string{"one", "two\x00"} {
		if err := l.PutSealed(t.Context(), "fleet-key", "private", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got := must(l.Sealed(t.Context(), "fleet-key", "private"))(t); string(got) != text {
			t.Errorf("sealed %q, want %q", got, text)
		}
	}
}

func TestEventsAreFilteredAndResumable(t *testing.T) {
	l := openTest(t)
	if id := must(l.LastEventID(t.Context()))(t); id != 0 {
		t.Errorf("newest event %d of an empty ledger", id)
	}
	sent := []orchestrator.Event{
		{Kind: orchestrator.EventCallDenied, Message: "a", By: tester},
		{Kind: orchestrator.EventJobAdopted, Workspace: "edge", Run: "run_1", Step: orchestrator.StepSSHWait, Job: "job_1", Host: "web1", State: "running", Message: "b"},
		{Kind: orchestrator.EventJobAdopted, Workspace: "other", Job: "job_2", Warning: true, Message: "c"},
	}
	for _, e := range sent {
		if err := l.AppendEvent(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	all := must(l.Events(t.Context(), orchestrator.EventFilter{}))(t)
	for i, e := range all {
		if e.At.IsZero() || e.ID == 0 {
			t.Errorf("event %+v lacks id or time", e)
		}
		want := sent[i]
		want.ID, want.At = e.ID, e.At
		if diff := cmp.Diff(want, e); diff != "" {
			t.Errorf("event %d (-want +got):\n%s", i, diff)
		}
	}
	if id := must(l.LastEventID(t.Context()))(t); id != all[2].ID {
		t.Errorf("newest event %d, want %d", id, all[2].ID)
	}
	for _, c := range []struct {
		filter orchestrator.EventFilter
		want   string
	}{
		{orchestrator.EventFilter{After: all[0].ID}, "bc"},
		{orchestrator.EventFilter{After: all[0].ID, Limit: 1}, "b"},
		{orchestrator.EventFilter{Workspace: "edge"}, "b"},
		{orchestrator.EventFilter{Run: "run_1"}, "b"},
		{orchestrator.EventFilter{Job: "job_2"}, "c"},
		{orchestrator.EventFilter{Security: true}, "a"},
	} {
		got := ""
		for _, e := range must(l.Events(t.Context(), c.filter))(t) {
			got += e.Message
		}
		if got != c.want {
			t.Errorf("%+v selects %q, want %q", c.filter, got, c.want)
		}
	}
}
