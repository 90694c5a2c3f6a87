// Package cli is the command line of exocomp: one file per command, thin over
// the contract in package rpc. Data goes to standard output, what is for
// people to standard error.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/spf13/cobra"
)

// Stdio is what a command reads and writes.
type Stdio struct {
	In       io.Reader
	Out, Err io.Writer
	Terminal bool // Err is a terminal: progress may be drawn
}

// app carries what every command needs.
type app struct {
	Stdio
	version string
	getenv  func(string) string
	socket  string
	token   string
}

// Run executes the command line and returns the exit code.
func Run(ctx context.Context, args []string, stdio Stdio, version string) int {
	a := &app{Stdio: stdio, version: version, getenv: os.Getenv}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdio.In)
	root.SetOut(stdio.Out)
	root.SetErr(stdio.Err)
	c, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	var silent *exitError
	if errors.As(err, &silent) {
		if silent.err != nil {
			a.complain(silent.err)
		}
		return silent.code
	}
	a.complain(helped(c, err))
	return exitCode(err)
}

// helped points a mistake that has no hint of its own at the command's help.
func helped(c *cobra.Command, err error) error {
	f := orchestrator.FailureOf(err)
	if f.Code != orchestrator.CodeInvalid || f.Hint != "" {
		return err
	}
	return &orchestrator.Error{Code: f.Code, Message: f.Message, Hint: c.CommandPath() + " --help", Err: err}
}

// complain prints an error for people: what is wrong, then what to type next on
// a line of its own.
func (a *app) complain(err error) {
	f := orchestrator.FailureOf(err)
	for i, line := range strings.Split(f.Message, "\n") {
		if i == 0 {
			line = "exocomp: " + line
		} else {
			line = "  " + line
		}
		_, _ = fmt.Fprintln(a.Err, printable(line))
	}
	if f.Hint != "" {
		_, _ = fmt.Fprintln(a.Err, "  next: "+printable(f.Hint))
	}
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "exocomp",
		Short: "From a VM to an onboarded, configured, converging machine",
		Long: `exocomp runs one durable chain — tofu apply, bounded SSH wait, onboard, configure
play — and keeps a standing inventory tf:<workspace> that later plays name.

Exit codes: 0 done (or submitted), 1 the work failed, 2 wrong usage or unknown
name, 3 no daemon or no valid token, 4 refused, 124 --wait-timeout passed (the run
goes on), 130 interrupted (the run goes on).`,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.Version = a.versionView().String() // --version
	root.SetVersionTemplate("{{.Version}}\n")
	root.PersistentFlags().StringVar(&a.socket, "socket", "", "`file` of the daemon's socket (default: EXOCOMP_SOCKET, then the user's, then /run/exocomp/exocomp.sock)")
	root.PersistentFlags().StringVar(&a.token, "token-file", "", "`file` with the token (default: EXOCOMP_TOKEN_FILE, then beside the socket)")
	root.AddCommand(
		a.serveCommand(), a.drainCommand(), a.doctorCommand(), a.versionCommand(),
		a.workspaceCommand(), a.provisionCommand(), a.handoffCommand(), a.inventoryCommand(), a.playbookCommand(),
		a.scheduleCommand(), a.hostCommand(), a.jobsCommand(), a.eventsCommand(),
	)
	root.InitDefaultCompletionCmd() // now, so that it is a command like the others
	usage(root)
	a.complete(root)
	return root
}

// group returns a command that only holds others.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(subs...)
	return c
}

// dial connects to the daemon. The caller closes the client.
func (a *app) dial(ctx context.Context) (*rpc.Client, error) {
	return rpc.Dial(ctx, rpc.ClientOptions{Socket: a.socket, TokenFile: a.token, Version: a.version})
}

// with runs f with a client.
func (a *app) with(ctx context.Context, f func(*rpc.Client) error) error {
	c, err := a.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	return f(c)
}

// tell prints what is worth a line, if anything is.
func (a *app) tell(note string) {
	if note != "" {
		a.say("%s", note)
	}
}

// say prints a line for people.
func (a *app) say(format string, args ...any) {
	_, _ = fmt.Fprintln(a.Err, printable(fmt.Sprintf(format, args...)))
}
