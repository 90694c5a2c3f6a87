package watch_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/ledger"
	"github.com/exocomp/exocomp/orchestrator/internal/watch"
)

// site is a watched workspace over a real ledger.
type site struct {
	t      *testing.T
	ledger *ledger.Ledger
	ws     orchestrator.Workspace
	w      *watch.Watcher
	tick   int64
}

func newSite(t *testing.T) *site {
	t.Helper()
	l, err := ledger.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &site{t: t, ledger: l, ws: orchestrator.Workspace{
		Name: "edge", Dir: t.TempDir(), Approval: orchestrator.ApprovalNever, Watch: true,
	}}
	s.write("main.tf", "# one")
	if s.ws, err = l.AddWorkspace(t.Context(), s.ws, orchestrator.Peer{}); err != nil {
		t.Fatal(err)
	}
	if err := watch.Begin(t.Context(), l, s.ws); err != nil {
		t.Fatal(err)
	}
	s.restart()
	return s
}

// restart forgets what the watcher knows, as a new daemon has.
func (s *site) restart() { s.w = watch.New(s.ledger, slog.New(slog.DiscardHandler)) }

func (s *site) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.ws.Dir, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// touch gives a file other times.
func (s *site) touch(name string) {
	s.t.Helper()
	s.tick++
	if err := os.Chtimes(filepath.Join(s.ws.Dir, name), time.Time{}, time.Unix(s.tick, 0)); err != nil {
		s.t.Fatal(err)
	}
}

// looks looks n times.
func (s *site) looks(n int) {
	s.t.Helper()
	for range n {
		if err := s.w.Look(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
}

// applies fails the test unless so many applies were queued, and returns the
// newest.
func (s *site) applies(n int) orchestrator.Job {
	s.t.Helper()
	jobs, err := s.ledger.Jobs(s.t.Context(), orchestrator.JobFilter{Workspace: "edge"})
	if err != nil {
		s.t.Fatal(err)
	}
	if len(jobs) != n {
		s.t.Fatalf("%d apply job(s), want %d", len(jobs), n)
	}
	if n == 0 {
		return orchestrator.Job{}
	}
	if !jobs[0].Spec.Watched {
		s.t.Errorf("the job is %+v, want it marked", jobs[0].Spec)
	}
	return jobs[0]
}

// end cancels what is queued.
func (s *site) end(id orchestrator.JobID) {
	s.t.Helper()
	if _, err := s.ledger.CancelJob(s.t.Context(), id, false, orchestrator.Peer{}); err != nil {
		s.t.Fatal(err)
	}
}

// said returns the messages of a kind of event.
func (s *site) said(kind orchestrator.EventKind) string {
	s.t.Helper()
	events, err := s.ledger.Events(s.t.Context(), orchestrator.EventFilter{Workspace: "edge"})
	if err != nil {
		s.t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range events {
		if e.Kind == kind {
			b.WriteString(e.Message + "\n")
		}
	}
	return b.String()
}

func TestAChangeIsAppliedOnceItHasSettled(t *testing.T) {
	s := newSite(t)
	s.looks(3)
	s.applies(0)
	s.write("main.tf", "# two")
	s.looks(1)
	s.write("net.tf", "# one")
	s.looks(1)
	s.applies(0) // it still changes
	s.looks(1)
	first := s.applies(1)
	if said := s.said(orchestrator.EventJobQueued); !strings.Contains(said, "the configuration changed: main.tf, net.tf") {
		t.Errorf("the event says %q", said)
	}
	s.looks(3)
	s.applies(1)

	s.write("main.tf", "# three")
	s.looks(2)
	s.applies(1) // the one that waits will read this, too
	s.end(first.ID)
	s.looks(3)
	s.applies(1)

	if err := os.Remove(filepath.Join(s.ws.Dir, "net.tf")); err != nil {
		t.Fatal(err)
	}
	s.looks(2)
	s.applies(2)
	if said := s.said(orchestrator.EventJobQueued); !strings.Contains(said, "net.tf (gone)") {
		t.Errorf("the event says %q", said)
	}
}

func TestWhatIsNoConfigurationIsNotApplied(t *testing.T) {
	s := newSite(t)
	s.looks(1)
	for _, name := range []string{"terraform.tfstate", ".terraform.lock.hcl", "plan.tfplan", "crash.log", "notes.md"} {
		s.write(name, "x")
		s.looks(3)
	}
	s.touch("main.tf")
	s.looks(3)
	s.write("main.tf", "# one") // written anew, as it was
	s.looks(3)
	s.applies(0)
}

func TestAChangeWhileNoDaemonRanIsApplied(t *testing.T) {
	s := newSite(t)
	s.write("main.tf", "# two") // before the first look
	s.looks(1)
	s.applies(0) // it may go on
	s.looks(1)
	job := s.applies(1)
	s.end(job.ID)
	s.restart()
	s.looks(3)
	s.applies(1) // not once more
	s.write("main.tf", "# one")
	s.restart()
	s.looks(2)
	s.applies(2) // also back to what it was
}

func TestAChangeThatIsRefusedIsToldOnceAndAppliedLater(t *testing.T) {
	s := newSite(t)
	refusing := &refusing{Ledger: s.ledger, err: orchestrator.Errorf(orchestrator.CodeRefused, "creates may be lost").WithHint("import them")}
	s.w = watch.New(refusing, slog.New(slog.DiscardHandler))
	s.looks(1)
	s.write("main.tf", "# two")
	s.looks(4)
	s.applies(0)
	said := s.said(orchestrator.EventWorkspaceWatched)
	if n := strings.Count(said, "the changed configuration is not applied: creates may be lost; next: import them"); n != 1 {
		t.Errorf("it is said %d times: %q", n, said)
	}
	refusing.err = nil
	s.looks(1)
	s.applies(1)
}

// refusing is a ledger that refuses applies.
type refusing struct {
	*ledger.Ledger
	err error
}

func (r *refusing) ApplyWatched(ctx context.Context, workspace, digest, why string) (orchestrator.Job, error) {
	if r.err != nil {
		return orchestrator.Job{}, r.err
	}
	return r.Ledger.ApplyWatched(ctx, workspace, digest, why)
}

func TestOtherSettingsLoseNoChange(t *testing.T) {
	s := newSite(t)
	refusing := &refusing{Ledger: s.ledger, err: orchestrator.Errorf(orchestrator.CodeRefused, "creates may be lost")}
	s.w = watch.New(refusing, slog.New(slog.DiscardHandler))
	s.looks(1)
	s.write("main.tf", "# two")
	s.looks(3)
	s.ws.Approval = orchestrator.ApprovalAlways
	s.add()
	s.looks(3)
	refusing.err = nil
	s.looks(1)
	s.end(s.applies(1).ID)

	vars := filepath.Join(t.TempDir(), "prod.tfvars")
	if err := os.WriteFile(vars, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.ws.VarFiles = []string{vars}
	s.add()
	s.looks(2)
	s.end(s.applies(2).ID) // another variables file is a change
}

func TestAnotherDirectoryBeginsAnew(t *testing.T) {
	s := newSite(t)
	s.looks(1)
	s.ws.Dir = t.TempDir()
	s.write("main.tf", "# other")
	s.add()
	s.looks(3)
	s.applies(0)

	s.ws.Watch = false
	s.add()
	s.write("main.tf", "# while nobody watches")
	s.looks(3)
	s.ws.Watch = true
	s.add()
	s.looks(3)
	s.applies(0)
	s.write("main.tf", "# watched")
	s.looks(2)
	s.applies(1)
}

// add states the workspace's settings again.
func (s *site) add() {
	s.t.Helper()
	if _, err := s.ledger.AddWorkspace(s.t.Context(), s.ws, orchestrator.Peer{}); err != nil {
		s.t.Fatal(err)
	}
}
