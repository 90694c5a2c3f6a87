package cli

import (
	"context"
	"errors"

	"github.com/exocomp/exocomp/orchestrator"
)

// Exit codes. 124 is timeout(1)'s, 130 the shell's for SIGINT.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNoDaemon    = 3
	exitRefused     = 4
	exitTimeout     = 124
	exitInterrupted = 130
)

// exitCodes maps every code of the domain.
var exitCodes = map[orchestrator.Code]int{
	orchestrator.CodeInvalid:         exitUsage,
	orchestrator.CodeNotFound:        exitUsage,
	orchestrator.CodeConflict:        exitRefused,
	orchestrator.CodeRefused:         exitRefused,
	orchestrator.CodeFailed:          exitFailed,
	orchestrator.CodeUnavailable:     exitNoDaemon,
	orchestrator.CodeUnauthenticated: exitNoDaemon,
	orchestrator.CodeDenied:          exitRefused,
	orchestrator.CodeCancelled:       exitFailed,
	orchestrator.CodeTimeout:         exitTimeout,
	orchestrator.CodeInternal:        exitFailed,
}

// exitCode returns the exit code for an error.
func exitCode(err error) int {
	if errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	if code, ok := exitCodes[orchestrator.CodeOf(err)]; ok {
		return code
	}
	return exitFailed
}

// workCode returns the exit code for work that was done and did not succeed:
// whatever went wrong inside it is no mistake in this command line.
func workCode(f *orchestrator.Failure) int {
	switch {
	case f == nil:
		return exitDone
	case exitCodes[f.Code] == exitRefused:
		return exitRefused
	default:
		return exitFailed
	}
}

// exitError ends a command with a code after it has said what there is to say;
// err, where set, is still printed.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return "exit"
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }
