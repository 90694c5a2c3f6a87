package jobs

import (
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/sandbox"
)

const (
	// AttemptEnv names the environment variable that marks everything that a
	// tool starts with the attempt's token. What carries it is ended with the
	// phase, so the daemon gives it to no child of its own.
	AttemptEnv = "EXOCOMP_ATTEMPT"
	// EventsEnv names the variable that tells a tool the number of the
	// descriptor to which it may write events.
	EventsEnv = "EXOCOMP_EVENTS_FD"
	// DefaultGrace is how long a tool that was told to end may take.
	DefaultGrace = 10 * time.Second
)

// Tool is one supervised command of an attempt.
type Tool struct {
	Phase string   // names its control directory; once per attempt
	Argv  []string // Argv[0] is an absolute path; no secret anywhere
	Env   []string // complete, but for what [Attempt.Exec] adds
	Dir   string   // absolute

	Secrets   []orchestrator.Secret // taken out of the log
	AgentKeys []orchestrator.Secret // private keys for an ssh-agent of its own, as SSH_AUTH_SOCK

	// Graceful says that the tool has a state to save: it is told once, by
	// SIGTERM, to end, and then waited for without limit. Only a person's force
	// kills it.
	Graceful bool
	// Grace bounds the end of a tool that is not Graceful: after it comes
	// SIGKILL. Zero means [DefaultGrace].
	Grace time.Duration

	KeepStdout bool // keep the raw output behind the phase's end: it is a journal
	Messages   bool // the output is JSON lines as of tofu -json: the log gets what they say
	Events     bool // give it a descriptor for events, see [EventsEnv]
	Sandbox    sandbox.Policy

	// Prepare, where set, is called on Exec's goroutine right before the tool is
	// started, and only then: it lays out files, which an adopted tool may be
	// using, and completes Argv, Env, Dir and AgentKeys. Exec returns its error.
	Prepare func(*Tool) error

	// OnEvent and OnStdout are called in the daemon, on Exec's goroutine, with
	// each whole line of the events and of the raw output while they are
	// written; before Exec returns they have seen every line that could be
	// read. An adopted or finished phase gives all of its lines again. OnStdout
	// needs KeepStdout. They must not keep the slice.
	OnEvent, OnStdout func(line []byte)
}

// Result is how a tool ended.
type Result struct {
	ExitCode   int    // -1 where a signal ended it
	Signal     string // such as SIGKILL, or empty
	StartedAt  time.Time
	FinishedAt time.Time
	Cancelled  bool   // it was told to end because a person asked, or by a drain
	StdoutPath string // with KeepStdout
	EventsPath string // with Events
}

// Succeeded reports whether the tool ended by itself with exit code 0.
func (r Result) Succeeded() bool { return r.ExitCode == 0 && r.Signal == "" }

var (
	// ErrShutdown ends a handler because the daemon goes. The job stays as it
	// is, its supervisor goes on, and the next daemon calls the handler again.
	ErrShutdown = errors.New("the daemon is shutting down")

	// ErrLost says that a phase has neither a supervisor nor a result: the
	// machine or the supervisor died. What is left of it has been ended.
	ErrLost = errors.New("the supervisor ended without a result")

	// ErrCancelled is the cause of a handler's context when a person asked for
	// the end of the job.
	ErrCancelled error = orchestrator.Errorf(orchestrator.CodeCancelled, "a person asked for its end")

	// ErrForced is ErrCancelled by a person who does not want to wait.
	ErrForced error = orchestrator.Errorf(orchestrator.CodeCancelled, "ended by force: %w", ErrCancelled)

	// ErrDrained is ErrCancelled because the daemon is to have nothing running.
	// What it ends is cut short, and done again when the drain is over.
	ErrDrained error = orchestrator.Errorf(orchestrator.CodeCancelled, "the daemon is draining: %w", ErrCancelled)
)

// LostError is [ErrLost] with what is left for the journal to be read.
type LostError struct {
	Phase string
	// SameBoot is false where the machine has been restarted since: what had
	// been written to the files may then be missing from them.
	SameBoot bool
	// Removed says that somebody has removed the phase's directory, and the
	// files with it. SameBoot is false then, too.
	Removed    bool
	StdoutPath string // with KeepStdout
	EventsPath string // with Events
}

func (e *LostError) Error() string {
	if e.Removed {
		return "the record of phase " + e.Phase + " was removed while it ran"
	}
	if !e.SameBoot {
		return "the machine was restarted during phase " + e.Phase
	}
	return "the supervisor of phase " + e.Phase + " ended without a result"
}

// Is makes a LostError an [ErrLost].
func (e *LostError) Is(target error) bool { return target == ErrLost }

var phaseName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// badTool is a mistake of the driver.
func badTool(format string, args ...any) error {
	return orchestrator.Errorf(orchestrator.CodeInternal, format, args...)
}

// validate checks what must be known of a phase that may be over.
func (t Tool) validate() error {
	switch {
	case !phaseName.MatchString(t.Phase):
		return badTool("phase %q is not a name", t.Phase)
	case t.OnStdout != nil && !t.KeepStdout:
		return badTool("phase %s reads an output that is not kept", t.Phase)
	}
	return nil
}

// prepare completes the tool and checks what is started.
func (t *Tool) prepare() error {
	if t.Prepare != nil {
		if err := t.Prepare(t); err != nil {
			return err
		}
	}
	switch {
	case len(t.Argv) == 0 || !filepath.IsAbs(t.Argv[0]):
		return badTool("phase %s names no absolute path to execute", t.Phase)
	case !filepath.IsAbs(t.Dir):
		return badTool("phase %s has no absolute working directory", t.Phase)
	}
	for _, e := range t.Env {
		if name, _, ok := strings.Cut(e, "="); !ok || name == "" {
			return badTool("phase %s has a malformed environment entry", t.Phase)
		}
	}
	return t.Sandbox.Validate()
}
