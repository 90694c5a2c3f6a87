package tofuapply

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/internal/tofu"
)

func TestMain(m *testing.M) {
	if code, ok := jobs.Entry(os.Args); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// ledger is the one workspace of a test.
type ledger struct {
	Ledger
	ws orchestrator.Workspace
}

func (l *ledger) Workspace(context.Context, string) (orchestrator.Workspace, error) { return l.ws, nil }

func (l *ledger) Inventory(context.Context, string) (orchestrator.Inventory, error) {
	return orchestrator.Inventory{}, orchestrator.ErrNotFound
}

// queue lets phases begin.
type queue struct{ jobs.Queue }

func (queue) SetPhase(context.Context, orchestrator.JobID, orchestrator.Secret, string) error {
	return nil
}

func (queue) Progress(context.Context, orchestrator.JobID, string, string) error { return nil }

// site is a workspace over real tofu.
type site struct {
	t                  *testing.T
	handler            *Handler
	ledger             *ledger
	dir, data, runtime string
}

func newSite(t *testing.T, configuration string) *site {
	t.Helper()
	runtime, err := os.MkdirTemp("", "tofuapply") // not t.TempDir: sockets below it have short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(runtime) })
	s := &site{t: t, dir: t.TempDir(), data: t.TempDir(), runtime: runtime}
	s.ledger = &ledger{ws: orchestrator.Workspace{Name: "edge", Dir: s.dir, Approval: orchestrator.ApprovalNever}}
	s.handler = &Handler{
		Ledger:    s.ledger,
		Locate:    func(ctx context.Context) (tofu.Install, error) { return tofu.Locate(ctx, "") },
		InitDir:   filepath.Join(s.data, "init"),
		Artifacts: func(name string) string { return filepath.Join(s.data, name+".json") },
	}
	s.write("main.tf", configuration)
	return s
}

func (s *site) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// attempt is one of a standalone job of the workspace.
func (s *site) attempt(id orchestrator.AttemptID, spec orchestrator.JobSpec) *jobs.Attempt {
	s.t.Helper()
	a, err := jobs.NewAttempt(jobs.Config{
		Queue: queue{}, DataDir: s.data, RuntimeDir: s.runtime, Logger: slog.New(slog.DiscardHandler),
	}, orchestrator.Job{
		ID: orchestrator.JobID("job_" + id), Kind: orchestrator.JobWorkspaceApply, Workspace: "edge", Spec: spec, StartedAt: time.Now(),
		Attempt: orchestrator.Attempt{Number: 1, ID: id, Token: orchestrator.NewSecret("token-" + string(id))},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// handle runs a job to its end.
func (s *site) handle(id orchestrator.AttemptID, spec orchestrator.JobSpec) orchestrator.Outcome {
	s.t.Helper()
	out, err := s.handler.Handle(s.t.Context(), s.attempt(id, spec))
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}
