package ledger

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

// atTime opens a ledger whose clock the test moves.
func atTime(t *testing.T) (*Ledger, *time.Time) {
	t.Helper()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	return openAt(t, filepath.Join(t.TempDir(), "ledger.db"), Options{Now: func() time.Time { return now }}), &now
}

func TestOldProgressGoesAndNoOtherEvent(t *testing.T) {
	l, now := atTime(t)
	addWorkspace(t, l, "edge")
	submitRun(t, l, "edge")
	j := claim(t, l)
	progress := func(message string) {
		t.Helper()
		if err := l.Progress(t.Context(), j.ID, message, ""); err != nil {
			t.Fatal(err)
		}
	}
	progress("old")
	before := must(l.Events(t.Context(), orchestrator.EventFilter{}))(t)
	*now = now.Add(orchestrator.LogRetention + time.Hour)
	if n := must(l.PruneProgress(t.Context()))(t); n != 0 {
		t.Errorf("%d events removed while no event is younger", n)
	}
	progress("young")
	if n := must(l.PruneProgress(t.Context()))(t); n != 1 {
		t.Errorf("%d events removed, want the old progress", n)
	}
	after := must(l.Events(t.Context(), orchestrator.EventFilter{}))(t)
	if len(after) != len(before) || after[len(after)-1].Message != "young" {
		t.Errorf("events %+v\nwere %+v; want old progress gone and young progress there", after, before)
	}
	for _, where := range []string{`kind <> 'job.progress'`, `message = 'young'`} {
		_, err := l.writer.ExecContext(t.Context(), `DELETE FROM event WHERE `+where)
		if err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("DELETE WHERE %s: %v, want the trigger's refusal", where, err)
		}
	}
}

func TestSnapshotsInUse(t *testing.T) {
	l, now := atTime(t)
	digest := func(name string) string { return "sha256:" + strings.Repeat(name, 64) }
	// end submits a run with that playbook and ends it at its first step.
	end := func(workspace, name string, f func(*orchestrator.NewRun), o orchestrator.Outcome) {
		t.Helper()
		n := newRun(workspace)
		n.Spec.Playbook.Digest = digest(name)
		f(&n)
		if _, _, err := l.SubmitRun(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		if o.Inventory == nil && o.Failure == nil {
			return
		}
		for o.Succeeded() {
			j := must(l.ClaimJob(t.Context()))(t)
			if j == nil {
				return
			}
			finish(t, l, *j, o)
		}
		finish(t, l, claim(t, l), o)
	}
	plain := func(*orchestrator.NewRun) {}
	done := orchestrator.Outcome{Inventory: inventoryOf("web1")}
	addWorkspace(t, l, "edge")
	addWorkspace(t, l, "lab")
	end("edge", "0", plain, failure()) // nothing goes on from it
	end("edge", "1", func(n *orchestrator.NewRun) {
		n.Spec.OnboardPlaybook = &orchestrator.PlaybookRef{Path: "/o.yml", Entry: "o.yml", Digest: digest("a")}
	}, done) // the newest that succeeded
	end("edge", "2", plain, failure())
	end("edge", "3", plain, failure()) // the newest
	*now = now.Add(time.Hour)
	since := *now
	end("lab", "4", plain, failure())
	end("lab", "5", plain, orchestrator.Outcome{}) // unfinished

	got := must(l.SnapshotsInUse(t.Context(), since))(t)
	want := []string{digest("1"), digest("3"), digest("4"), digest("5"), digest("a")}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("in use %q\nwant %q", got, want)
	}
	*now = now.Add(time.Hour)
	got = must(l.SnapshotsInUse(t.Context(), *now))(t)
	if slices.Contains(got, digest("4")) || !slices.Contains(got, digest("5")) {
		t.Errorf("in use later %q, want the unfinished run's and not the old one's", got)
	}
}

func TestSnapshotsOfStandaloneJobsInUse(t *testing.T) {
	l, now := atTime(t)
	digest := func(name string) string { return "sha256:" + strings.Repeat(name, 64) }
	submit := func(workspace, name string) orchestrator.Job {
		t.Helper()
		ref := orchestrator.PlaybookRef{Path: "/site.yml", Entry: "site.yml", Digest: digest(name)}
		return must(l.SubmitJob(t.Context(), orchestrator.NewJob{
			Kind: orchestrator.JobPlaybookRun, Workspace: workspace,
			Spec: orchestrator.JobSpec{Play: &orchestrator.PlaySpec{Playbook: ref}},
		}))(t)
	}
	addWorkspace(t, l, "edge")
	submit("edge", "1")
	finish(t, l, claim(t, l), orchestrator.Outcome{}) // ended long ago
	submit("edge", "2")
	if j := claim(t, l); true {
		must(l.InterruptJob(t.Context(), j.ID, j.Attempt.Token, "a crash", true))(t) // may be redriven
	}
	submit("edge", "3") // queued
	*now = now.Add(orchestrator.LogRetention)
	got := must(l.SnapshotsInUse(t.Context(), *now))(t)
	if want := []string{digest("2"), digest("3")}; !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("in use %q\nwant %q", got, want)
	}
}
