// Command exocomp is the daemon and its command line.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/exocomp/exocomp/orchestrator/internal/cli"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/internal/sandbox"
	"golang.org/x/term"
)

// version is set at link time.
var version = "dev"

func main() {
	// The two entries that the daemon re-executes itself for.
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case jobs.SuperviseCommand:
			os.Exit(jobs.SuperviseMain())
		case sandbox.ShimCommand:
			os.Exit(sandbox.ExecMain())
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, os.Args[1:], cli.Stdio{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Terminal: term.IsTerminal(int(os.Stderr.Fd())),
	}, version)
	stop()
	os.Exit(code)
}
