// Package engine turns the queue into chains: it gives every job the handler of
// its kind, publishes what a commit has changed, and lets the pool recover what
// a crash cut short. The release of a step is part of the ledger's transaction
// that ends the step before it, so nothing here polls and nothing can be lost
// between the two.
package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"golang.org/x/sync/errgroup"
)

// Ledger is what the engine needs of the ledger.
type Ledger interface {
	jobs.Queue
	Workspace(ctx context.Context, name string) (orchestrator.Workspace, error)
	Inventory(ctx context.Context, workspace string) (orchestrator.Inventory, error)
	Inventories(ctx context.Context) ([]orchestrator.Inventory, error)
	Pins(ctx context.Context, filter orchestrator.PinFilter) ([]orchestrator.Pin, error)
	Admissions(ctx context.Context, workspace string) ([]orchestrator.Admission, error)
	Runs(ctx context.Context, filter orchestrator.RunFilter) ([]orchestrator.Run, error)
	AbandonRuns(ctx context.Context) (next time.Time, err error)
}

// Publisher writes the published copies.
type Publisher interface {
	Inventory(ctx context.Context, inv orchestrator.Inventory) error
	Pins(ctx context.Context, pins []orchestrator.Pin) error
	Remove(workspace string) error
	All(ctx context.Context, inventories []orchestrator.Inventory, pins []orchestrator.Pin) error
	// Verify refuses an inventory whose published copy is lost or changed.
	Verify(inv orchestrator.Inventory) error
}

// Handlers are the step kinds' handlers. A standalone `workspace apply` and
// `host onboard`, a leave play and a `playbook run` are the same work as the steps.
type Handlers struct {
	TofuApply   jobs.Handler
	SSHWait     jobs.Handler
	HostOnboard jobs.Handler
	AnsiblePlay jobs.Handler

	// A playbook run is both: it admits, then plays.
	Onboard Onboarder
	Play    Player
}

// Config is what an engine needs; every field must be set.
type Config struct {
	Ledger    Ledger
	Publisher Publisher
	Handlers  Handlers
	Pool      jobs.Config // Queue and Handler are the engine's
	Logger    *slog.Logger
}

// Engine runs chains and standalone jobs.
type Engine struct {
	Ledger // the queue's other calls go straight to it
	cfg    Config
	pool   *jobs.Pool

	// settled is a lock that somebody can stop waiting for: it holds one value
	// while somebody commits and then publishes, so that a reader who waits for
	// it in between never sees a state whose files are not there.
	settled chan struct{}
	stale   bool // something may not be published; guarded by settled
}

// New returns an engine that does nothing until [Engine.Run].
func New(cfg Config) *Engine {
	e := &Engine{Ledger: cfg.Ledger, cfg: cfg, settled: make(chan struct{}, 1), stale: true}
	cfg.Pool.Queue, cfg.Pool.Handler = e, e
	e.pool = jobs.New(cfg.Pool)
	return e
}

// Run publishes what the ledger holds, recovers the jobs that the daemon before
// this one left running, and executes the queue until ctx ends. Running tools
// are then left to their supervisors.
func (e *Engine) Run(ctx context.Context) error {
	if err := e.publishStale(ctx); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return e.pool.Run(ctx) })
	g.Go(func() error { return e.republish(ctx) })
	g.Go(func() error { return e.abandon(ctx) })
	return g.Wait()
}

// Recovered returns a channel that is closed once [Engine.Run] has taken up the
// jobs that the daemon before this one left running.
func (e *Engine) Recovered() <-chan struct{} { return e.pool.Recovered() }

// Handle implements [jobs.Handler] by the kind of the job.
func (e *Engine) Handle(ctx context.Context, a *jobs.Attempt) (orchestrator.Outcome, error) {
	h, err := e.handler(a.Job)
	if err != nil {
		return orchestrator.Outcome{}, err
	}
	if a.Job.StepKind == orchestrator.StepSSHWait {
		// An inventory that a resource handed over was captured in the turn of
		// its run, by whichever commit began that turn.
		if err := e.publishHanded(ctx, a.Job.Workspace); err != nil {
			return orchestrator.Outcome{}, err
		}
	}
	return h.Handle(ctx, a)
}

// handlerFunc is a handler that is one function.
type handlerFunc func(context.Context, *jobs.Attempt) (orchestrator.Outcome, error)

// Handle implements [jobs.Handler].
func (f handlerFunc) Handle(ctx context.Context, a *jobs.Attempt) (orchestrator.Outcome, error) {
	return f(ctx, a)
}

func (e *Engine) handler(j orchestrator.Job) (jobs.Handler, error) {
	switch {
	case j.Kind == orchestrator.JobWorkspaceApply, j.StepKind == orchestrator.StepTofuApply:
		return e.cfg.Handlers.TofuApply, nil
	case j.Kind == orchestrator.JobHostOnboard, j.StepKind == orchestrator.StepHostOnboard:
		return e.cfg.Handlers.HostOnboard, nil
	case j.StepKind == orchestrator.StepSSHWait:
		return e.cfg.Handlers.SSHWait, nil
	case j.StepKind == orchestrator.StepAnsiblePlay, j.Kind == orchestrator.JobLeavePlay:
		return e.cfg.Handlers.AnsiblePlay, nil
	case j.Kind == orchestrator.JobPlaybookRun:
		return handlerFunc(e.playbookRun), nil
	default:
		return nil, orchestrator.Errorf(orchestrator.CodeInternal, "there is no handler for job %s (%s %s)", j.ID, j.Kind, j.StepKind)
	}
}

// republishInterval is how soon a publication that failed, say on a full disk,
// is tried again.
const republishInterval = 10 * time.Second

// republish tries again what could not be published.
func (e *Engine) republish(ctx context.Context) error {
	t := time.NewTicker(republishInterval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			if err := e.publishStale(ctx); err != nil && ctx.Err() == nil {
				e.cfg.Logger.Error("publish again", "err", err)
			}
		}
	}
}
