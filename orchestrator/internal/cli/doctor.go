package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/daemon"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/spf13/cobra"
)

// check is one line of doctor's answer.
type check struct {
	Name    string `json:"name"`
	OK      bool   `json:"ok"`
	Warning bool   `json:"warning,omitempty"` // worth knowing; everything works
	Says    string `json:"says"`
	Next    string `json:"next,omitempty"`
}

func (a *app) doctorCommand() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation, with or without a running daemon",
		Args:  cobra.NoArgs,
	}
	c.Flags().StringVar(&file, "config", "", "settings `file` that serve would read")
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		checks := a.examine(c.Context(), file)
		bad := 0
		for _, k := range checks {
			if !k.OK {
				bad++
			}
		}
		if *asJSON {
			if err := a.printJSON(checks); err != nil {
				return err
			}
		} else {
			for _, k := range checks {
				mark := "ok  "
				switch {
				case !k.OK:
					mark = "BAD "
				case k.Warning:
					mark = "warn"
				}
				_, _ = fmt.Fprintf(a.Out, "%s %-14s %s\n", mark, k.Name, printable(k.Says))
				if k.Next != "" {
					_, _ = fmt.Fprintf(a.Out, "     %-14s next: %s\n", "", printable(k.Next))
				}
			}
		}
		if bad > 0 {
			return &exitError{code: exitFailed}
		}
		return nil
	}
	return c
}

// examine checks the installation: as a running daemon sees it, or as the daemon
// would that this user could start here.
func (a *app) examine(ctx context.Context, file string) []check {
	cfg, err := a.config(file)
	if err != nil {
		return []check{failed("configuration", err)}
	}
	says := cfg.File
	if says == "" {
		says = "no file, defaults"
	}
	checks := []check{passed("configuration", says)}
	c, err := a.dial(ctx)
	if err != nil {
		checks = append(checks, directory("data", cfg.DataDir), directory("runtime", cfg.RuntimeDir))
		checks = append(append(checks, ledgerCheck(ctx, cfg)...), failed("daemon", err))
		return append(checks, toolChecks(daemon.Tools(ctx, cfg))...)
	}
	defer func() { _ = c.Close() }()
	st, err := c.GetStatus(ctx)
	if err != nil {
		return append(checks, failed("daemon", err))
	}
	checks = append(checks,
		passed("daemon", fmt.Sprintf("exocomp %s since %s, %d running, %d queued", st.Version, instant(st.StartedAt), st.Running, st.Queued)),
		passed("data", st.DataDir))
	if st.Draining {
		checks = append(checks, check{Name: "drain", Says: "the daemon is draining and starts nothing", Next: "exocomp drain --off"})
	}
	checks = append(checks, toolChecks(st.Tools)...)
	for _, w := range st.Warnings {
		checks = append(checks, check{Name: "warning", OK: true, Warning: true, Says: w})
	}
	return checks
}

func passed(name, says string) check { return check{Name: name, OK: true, Says: says} }

// failed is the line of a check that an error ended.
func failed(name string, err error) check {
	f := orchestrator.FailureOf(err)
	return check{Name: name, Says: f.Message, Next: f.Hint}
}

// ledgerCheck reads the ledger that a daemon with these settings would open, if
// there is one.
func ledgerCheck(ctx context.Context, cfg daemon.Config) []check {
	err := daemon.CheckLedger(ctx, cfg)
	switch {
	case errors.Is(err, orchestrator.ErrNotFound):
		return nil
	case err != nil:
		return []check{failed("ledger", err)}
	default:
		return []check{passed("ledger", cfg.Ledger())}
	}
}

func toolChecks(tools []rpc.Tool) []check {
	checks := make([]check, 0, len(tools))
	for _, t := range tools {
		c := passed(t.Name, t.Version+" "+t.Path)
		if t.Error != "" {
			c = check{Name: t.Name, Says: t.Error}
		}
		checks = append(checks, c)
	}
	return checks
}

// directory checks that a directory is the daemon's own, or can be made by this
// user.
func directory(name, path string) check {
	if err := daemon.CheckDirectory(path); err != nil {
		return failed(name, err)
	}
	at := path
	for {
		info, err := os.Stat(at)
		if errors.Is(err, os.ErrNotExist) && at != filepath.Dir(at) {
			at = filepath.Dir(at)
			continue
		}
		if err != nil {
			return failed(name, err)
		}
		if !info.IsDir() {
			return check{Name: name, Says: at + " is not a directory", Next: "move it away, or set another directory in exocomp.hcl"}
		}
		break
	}
	if err := writable(at); err != nil {
		return check{Name: name, Says: fmt.Sprintf("%s cannot be written by uid %d: %v", at, os.Getuid(), err), Next: "run doctor as the daemon's user"}
	}
	if at != path {
		return passed(name, path+" (serve will make it)")
	}
	return passed(name, path)
}
