// Package script is what Ansible calls an inventory script: an executable that
// prints an inventory. What it prints is to Ansible what the published file is;
// where it cannot say so it prints nothing, one line on standard error, and fails.
package script

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/inventory"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// Exit codes. Ansible knows only zero and the rest.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// patience bounds a call: Ansible waits for ever.
const patience = time.Minute

const help = `exocomp-inventory prints standing inventories of exocomp for Ansible.

  exocomp-inventory --list         the inventory, as JSON
  exocomp-inventory --host NAME    the variables of one host, as JSON
  exocomp-inventory --version

Which one: that of ` + InventoryEnv + `, tf:edge say; or the one that a symbolic link
to this executable is named after. With neither, all of them at once, a group per
workspace; names that two of them have are refused.

The daemon is found by ` + rpc.SocketEnv + ` and ` + rpc.TokenFileEnv + `, as by exocomp.

To Ansible a path, which it never looks up, and a failing inventory is a warning
unless its configuration says otherwise. Both are put right in a directory by

  exocomp inventory link tf:edge DIR
`

// call is what the command line asks for.
type call struct {
	list, version bool
	host          string
}

// Run executes the command line, args[0] included, and returns the exit code.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer, version string) int {
	asked, err := parse(args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		err = write(stdout, []byte(help))
	case err != nil:
		return complain(stderr, err, exitUsage)
	case asked.version:
		err = write(stdout, fmt.Appendf(nil, "exocomp-inventory %s (contract %d)\n", version, rpc.ContractVersion))
	default:
		err = answer(ctx, args[0], asked, stdout, version)
	}
	if err != nil {
		return complain(stderr, err, exitFailed)
	}
	return exitDone
}

func parse(args []string) (call, error) {
	var asked call
	flags := flag.NewFlagSet("exocomp-inventory", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	flags.BoolVar(&asked.list, "list", false, "")
	flags.BoolVar(&asked.version, "version", false, "")
	flags.StringVar(&asked.host, "host", "", "")
	wrong := func(format string, args ...any) error {
		return orchestrator.Errorf(orchestrator.CodeInvalid, format, args...).WithHint("exocomp-inventory --help")
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return call{}, err
	case err != nil:
		return call{}, wrong("%w", err)
	case flags.NArg() > 0:
		return call{}, wrong("unexpected argument %q", flags.Arg(0))
	case asked.version:
	case asked.list == (asked.host != ""):
		return call{}, wrong("one of --list and --host NAME is needed")
	}
	return asked, nil
}

// answer writes what Ansible asked for, or nothing.
func answer(ctx context.Context, calledAs string, asked call, stdout io.Writer, version string) error {
	workspace, err := configured(os.Getenv(InventoryEnv), calledAs)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client, err := rpc.Dial(ctx, rpc.ClientOptions{Version: version})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	inv, err := standing(ctx, client, workspace)
	if err != nil {
		return err
	}
	if asked.list {
		return write(stdout, inventory.RenderScript(inv))
	}
	vars, ok := inventory.RenderHostVars(inv, asked.host)
	if !ok {
		return orchestrator.Errorf(orchestrator.CodeNotFound, "no host is called %s", asked.host).
			WithHint("list them: exocomp-inventory --list")
	}
	return write(stdout, vars)
}

func write(stdout io.Writer, data []byte) error {
	if _, err := stdout.Write(data); err != nil {
		return fmt.Errorf("write the inventory: %w", err)
	}
	return nil
}

// complain says on one line what is wrong and what to type next; Ansible shows it
// as the reason of its own failure.
func complain(stderr io.Writer, err error, code int) int {
	f := orchestrator.FailureOf(err)
	line := strings.ReplaceAll(f.Message, "\n", "; ")
	if f.Hint != "" {
		line += "; next: " + f.Hint
	}
	_, _ = fmt.Fprintf(stderr, "exocomp-inventory: %s\n", strings.Map(printable, line))
	return code
}

// printable replaces what would do more to a terminal than stand there.
func printable(r rune) rune {
	if !unicode.IsGraphic(r) {
		return '?'
	}
	return r
}
