// Command exocomp is the daemon and its command line.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/exocomp/exocomp/orchestrator/internal/cli"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"golang.org/x/term"
)

// version is set at link time.
var version = "dev"

func main() {
	if code, ok := jobs.Entry(os.Args); ok {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, os.Args[1:], cli.Stdio{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Terminal: term.IsTerminal(int(os.Stderr.Fd())),
	}, version)
	stop()
	os.Exit(code)
}
