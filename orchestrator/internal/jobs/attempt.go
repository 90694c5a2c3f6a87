package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
	"github.com/exocomp/exocomp/orchestrator/internal/fault"
)

// Attempt is one execution of a job, as its handler sees it. It may be the
// second time that a handler sees the same one: see [Handler].
type Attempt struct {
	Job orchestrator.Job // as it was claimed
	// WorkDir is the tools' own private directory, with home/, tmp/ and cp/ in
	// it, on a file system that may be RAM. It is removed when the job ends.
	WorkDir string
	// ControlDir holds the log and the phases' directories; no tool is granted
	// it. A handler may keep files in it that must outlive a crash.
	ControlDir string

	cfg  Config
	log  logWriter
	slog *slog.Logger

	doing budget // of Doing

	stopping <-chan struct{} // closed when the daemon shuts down

	asked     atomic.Bool // a person asked for the end
	drained   atomic.Bool // a drain ended it
	forceOnce sync.Once
	forced    chan struct{} // closed when a person will not wait any longer

	// Of the handler's goroutine, and of the pool once the handler has returned.
	newest string          // the phase that was begun last, by this daemon or one before
	read   map[string]bool // phases whose end Exec has told
	over   error           // why Exec starts nothing any more; nil while it does

	evidence bool // its raw files show what may be lost
}

// NewAttempt returns the attempt of a claimed job and makes its directories,
// which may be there already. The pool does it for its jobs; a test of a
// handler may do it too.
func NewAttempt(cfg Config, job orchestrator.Job) (*Attempt, error) {
	a := newAttempt(cfg.withDefaults(), job, make(chan struct{}))
	return a, a.prepare()
}

func newAttempt(cfg Config, job orchestrator.Job, stopping <-chan struct{}) *Attempt {
	a := &Attempt{
		Job:        job,
		WorkDir:    workDir(cfg.RuntimeDir, job.Attempt.ID),
		ControlDir: ControlDir(cfg.DataDir, job.Attempt.ID),
		cfg:        cfg,
		slog:       cfg.Logger.With("job", string(job.ID), "attempt", string(job.Attempt.ID)),
		stopping:   stopping,
		forced:     make(chan struct{}),
		newest:     job.Phase,
		read:       map[string]bool{},
	}
	a.log = logWriter{a.ControlDir}
	return a
}

// prepare makes the attempt's directories.
func (a *Attempt) prepare() error {
	if a.Job.Attempt.Token.IsZero() {
		return orchestrator.Errorf(orchestrator.CodeInternal, "job %s has no attempt", a.Job.ID)
	}
	if err := checkSocketPaths(a.cfg.RuntimeDir, a.Job.Attempt.ID); err != nil {
		return err
	}
	for _, dir := range []string{
		a.ControlDir, filepath.Join(a.WorkDir, "home"), filepath.Join(a.WorkDir, "tmp"), filepath.Join(a.WorkDir, "cp"),
	} {
		if err := durable.Mkdir(dir); err != nil {
			return err
		}
	}
	return nil
}

// sshControlName is the room that a control socket needs in cp/: ten characters
// of Ansible's hash and ssh's temporary suffix of seventeen.
const sshControlName = 27

// checkSocketPaths refuses a runtime directory below which the sockets of an
// attempt could not be bound.
func checkSocketPaths(runtimeDir string, id orchestrator.AttemptID) error {
	work := workDir(runtimeDir, id)
	longest := max(len(filepath.Join(work, agentSocket)), len(filepath.Join(work, "cp"))+1+sshControlName)
	if longest <= durable.MaxSocketPath {
		return nil
	}
	return orchestrator.Errorf(orchestrator.CodeInvalid,
		"the runtime directory %s is %d bytes too long: the path of a unix socket in it holds at most %d",
		runtimeDir, longest-durable.MaxSocketPath, durable.MaxSocketPath).
		WithHint("choose a shorter runtime directory")
}

// agentSocket is the ssh-agent's name in the work directory.
const agentSocket = "agent.sock"

func workRoot(runtimeDir string) string { return filepath.Join(runtimeDir, "work") }

func workDir(runtimeDir string, id orchestrator.AttemptID) string {
	return filepath.Join(workRoot(runtimeDir), string(id))
}

func (a *Attempt) control(phase string) control {
	return control{filepath.Join(a.ControlDir, phase)}
}

// Logf appends a line to the attempt's log. It must not hold a secret: nothing
// is redacted here.
func (a *Attempt) Logf(format string, args ...any) {
	line := strings.TrimRight(strings.ToValidUTF8(fmt.Sprintf(format, args...), "\uFFFD"), "\n") + "\n"
	if _, err := a.log.Write([]byte(line)); err != nil {
		a.slog.Warn("a line of the attempt's log is lost", "err", err)
	}
}

// LastLines returns up to n lines from the end of the attempt's log, for a
// report.
func (a *Attempt) LastLines(n int) []string {
	lines, err := (&Log{a.ControlDir}).LastLines(n)
	if err != nil {
		a.slog.Warn("read the end of the attempt's log", "err", err)
	}
	return lines
}

// Progress records an event of the job: message is one line without a secret,
// host may be empty. It is a courtesy, so a failure is only logged.
func (a *Attempt) Progress(ctx context.Context, message, host string) {
	if err := a.cfg.Queue.Progress(ctx, a.Job.ID, message, host); err != nil {
		a.slog.Warn("record progress", "err", err)
	}
}

// adopted records that the phase's tool was running when this daemon came.
func (a *Attempt) adopted(ctx context.Context, phase string) {
	a.slog.Info("adopted a running tool", "phase", phase)
	if err := a.cfg.Queue.Adopted(ctx, a.Job.ID, phase); err != nil {
		a.slog.Warn("record the adoption", "err", err)
	}
}

// force makes every Exec, also one that is waiting for a graceful end, kill.
func (a *Attempt) force() { a.forceOnce.Do(func() { close(a.forced) }) }

func (a *Attempt) isForced() bool { return isClosed(a.forced) }

// isCancelled reports whether a person asked for the end of the job, of this
// daemon or of one before it, or a drain for that of all.
func (a *Attempt) isCancelled(ctx context.Context) bool {
	return a.Job.CancelRequested || a.asked.Load() || a.drained.Load() || a.isForced() || errors.Is(context.Cause(ctx), ErrCancelled)
}

// Outlive returns a context that a person's cancellation of the job does not
// end, only a shutdown: for what must be known however the job ends.
func (a *Attempt) Outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	go func() {
		for ended := ctx.Done(); ; ended = nil {
			select {
			case <-ended:
				if errors.Is(context.Cause(ctx), ErrShutdown) {
					cancel(ErrShutdown)
				}
			case <-a.stopping:
				cancel(ErrShutdown)
				return
			case <-longer.Done():
				return
			}
		}
	}()
	return longer, func() { cancel(nil) }
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// fault is a fault point that a test may name by the phase or by the kind of
// the step or job.
func (a *Attempt) fault(name, phase string) {
	fault.Point(name, phase)
	fault.Point(name, a.kind())
}

func (a *Attempt) kind() string { return a.Job.Work() }

// retryWait bounds the pause between two tries to write the ledger.
const retryWait = 5 * time.Second

// retry calls fn until it succeeds, is refused for good, or ctx has ended; fn
// is called at least once, with a context that outlives ctx by a moment. A
// full disk is no reason to lose what a job did.
func (a *Attempt) retry(ctx context.Context, what string, fn func(context.Context) error) error {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, retryWait) {
		try, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*retryWait)
		err := fn(try)
		cancel()
		switch orchestrator.CodeOf(err) {
		case orchestrator.CodeInternal, orchestrator.CodeUnavailable, orchestrator.CodeTimeout:
		default:
			return err
		}
		if ctx.Err() != nil {
			return err
		}
		a.slog.Error(what+": trying again", "err", err, "after", wait)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}
