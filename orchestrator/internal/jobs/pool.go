package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

// DefaultWorkers is how many jobs run at once unless configured otherwise.
const DefaultWorkers = 4

// Queue is what the pool needs of the ledger. Calls with a token are
// [orchestrator.CodeConflict] where it is not the live attempt's.
type Queue interface {
	// ClaimJob marks the next job that may run as running, with a new attempt,
	// and returns it; nil where there is none.
	ClaimJob(context.Context) (*orchestrator.Job, error)
	// SetPhase makes the intent to run a tool durable.
	SetPhase(ctx context.Context, id orchestrator.JobID, token orchestrator.Secret, phase string) error
	// FinishJob records how the attempt ended and releases what comes next.
	FinishJob(context.Context, orchestrator.JobID, orchestrator.Secret, orchestrator.Outcome) (orchestrator.Job, error)
	// InterruptJob ends an attempt that was cut short: a step's job is queued
	// again, a standalone one is interrupted. crash counts it as a crash.
	InterruptJob(ctx context.Context, id orchestrator.JobID, token orchestrator.Secret, reason string, crash bool) (orchestrator.Job, error)
	// RunningJobs returns the jobs that are marked as running.
	RunningJobs(context.Context) ([]orchestrator.Job, error)
	Job(context.Context, orchestrator.JobID) (orchestrator.Job, error)
	// Adopted records that this daemon follows a tool that another one started.
	Adopted(ctx context.Context, id orchestrator.JobID, phase string) error
	// Draining reports whether nothing is to run. While it does, ClaimJob gives
	// nothing, and the pool ends what it has.
	Draining(context.Context) (bool, error)
	// Progress records an event of the job; host may be empty.
	Progress(ctx context.Context, id orchestrator.JobID, message, host string) error
	// Changed returns a channel that is closed at the next change of any job,
	// or of Draining.
	Changed() <-chan struct{}
}

// Handler executes the jobs; the engine gives it.
type Handler interface {
	// Handle does the work of a's job and says how it ended. It is called
	// again for the same attempt by the next daemon, after a crash if a phase
	// was begun, and must then walk the same phases in the same order:
	// [Attempt.Exec] gives those that are over their old results. Work between
	// phases is repeated. It is also called again, for Exec to tell how the
	// tools ended and to start none, where it returned before it had asked.
	//
	// An error is a failed outcome with that error, and so is a panic; but once
	// ctx has ended it stands for context.Cause(ctx), so a handler returns an
	// error of its own work as it is and never makes an outcome of one that
	// ctx may have caused. [ErrLost] it returns as Exec did.
	Handle(ctx context.Context, a *Attempt) (orchestrator.Outcome, error)
}

// Config is what a pool needs. Queue, Handler, DataDir and RuntimeDir must be
// set.
type Config struct {
	Queue      Queue
	Handler    Handler
	DataDir    string // absolute; control directories and logs, on a disk
	RuntimeDir string // absolute; work directories, better in RAM
	Workers    int    // 0: [DefaultWorkers]
	Logger     *slog.Logger
	CleanStop  bool   // the daemon before this one ended in order
	SelfExe    string // with the supervise and sandbox-exec entries; empty: /proc/self/exe
	BootIDFile string // empty: the kernel's

	// How long a supervisor may hold its lock after its result is there before
	// the result is taken all the same; zero is ten seconds. For tests, as is
	// noCgroups: a sweep must do without them.
	takeResultAfter time.Duration
	noCgroups       bool
}

func (c Config) withDefaults() Config {
	if c.Workers <= 0 {
		c.Workers = DefaultWorkers
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.SelfExe == "" {
		c.SelfExe = "/proc/self/exe"
	}
	if c.takeResultAfter == 0 {
		c.takeResultAfter = 10 * time.Second
	}
	if c.BootIDFile == "" {
		c.BootIDFile = defaultBootID
	}
	return c
}

// Pool runs the queue.
type Pool struct {
	cfg  Config
	jobs sync.WaitGroup
	free chan struct{} // receives when a job has ended; holds at most one

	recovered chan struct{} // closed when what an earlier daemon left is taken up

	mu     sync.Mutex
	active int
	lent   int // workers whose jobs wait for another job
}

// New returns a pool. It starts nothing.
func New(cfg Config) *Pool {
	return &Pool{cfg: cfg.withDefaults(), free: make(chan struct{}, 1), recovered: make(chan struct{})}
}

// Recovered returns a channel that is closed once [Pool.Run] has taken up what
// an earlier daemon left: only then do the ledger's running jobs and the
// directories on the disk belong together.
func (p *Pool) Recovered() <-chan struct{} { return p.recovered }

// MakeDirs makes the directories of a pool, which may be there already, or says
// why a pool could not work in them.
func MakeDirs(dataDir, runtimeDir string) error {
	// Attempt ids are all eight characters long.
	if err := checkSocketPaths(runtimeDir, "xxxxxxxx"); err != nil {
		return err
	}
	for _, dir := range []string{controlRoot(dataDir), workRoot(runtimeDir)} {
		if !filepath.IsAbs(dir) {
			return orchestrator.Errorf(orchestrator.CodeInvalid, "the directory %s is not an absolute path", dir)
		}
		if err := durable.Mkdir(dir); err != nil {
			return err
		}
	}
	return nil
}

// claimRetry is how long the pool rests when the ledger cannot be asked.
const claimRetry = time.Second

// Run takes up what an earlier daemon left, then claims and runs jobs until
// ctx ends. It leaves running tools to their supervisors and returns nil when
// every handler has returned. The error says why it could not begin.
func (p *Pool) Run(ctx context.Context) error {
	if err := MakeDirs(p.cfg.DataDir, p.cfg.RuntimeDir); err != nil {
		return err
	}
	defer p.jobs.Wait()
	if err := p.recover(ctx); err != nil {
		return fmt.Errorf("recover jobs: %w", err)
	}
	close(p.recovered)
	for ctx.Err() == nil {
		changed := p.cfg.Queue.Changed()
		var again <-chan time.Time
		if err := p.claim(ctx); err != nil && ctx.Err() == nil {
			p.cfg.Logger.Error("claim a job", "err", err)
			again = time.After(claimRetry)
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-p.free:
		case <-again:
		}
	}
	return nil
}

// claim starts jobs while there are any and a worker is free.
func (p *Pool) claim(ctx context.Context) error {
	for ctx.Err() == nil && p.idle() {
		job, err := p.cfg.Queue.ClaimJob(ctx)
		if err != nil || job == nil {
			return err
		}
		p.start(ctx, *job)
	}
	return nil
}

// idle reports whether a worker is free.
func (p *Pool) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.active < p.cfg.Workers+p.lent
}

// Lend gives the worker of a job that waits for another job to that one, until
// back is called: with one worker they would wait for each other for ever.
func (p *Pool) Lend() (back func()) {
	p.mu.Lock()
	p.lent++
	p.mu.Unlock()
	p.wake()
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.lent--
	})
}

// wake lets the pool look for a job.
func (p *Pool) wake() {
	select {
	case p.free <- struct{}{}:
	default:
	}
}

// start runs a job on a goroutine of its own.
func (p *Pool) start(ctx context.Context, job orchestrator.Job) {
	p.mu.Lock()
	p.active++
	p.mu.Unlock()
	p.jobs.Go(func() {
		defer func() {
			p.mu.Lock()
			p.active--
			p.mu.Unlock()
			p.wake()
		}()
		p.execute(ctx, job)
	})
}
