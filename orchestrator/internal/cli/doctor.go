package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

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
			a.printChecks(checks)
		}
		if bad > 0 {
			return &exitError{code: exitFailed}
		}
		return nil
	}
	return c
}

// printChecks prints a line a check, and below it what to do.
func (a *app) printChecks(checks []check) {
	width := 0
	for _, k := range checks {
		width = max(width, len(k.Name))
	}
	for _, k := range checks {
		mark := "ok"
		switch {
		case !k.OK:
			mark = "BAD"
		case k.Warning:
			mark = "warn"
		}
		_, _ = fmt.Fprintf(a.Out, "%-4s %-*s  %s\n", mark, width, k.Name, printable(k.Says))
		if k.Next != "" {
			_, _ = fmt.Fprintf(a.Out, "%-4s %-*s  next: %s\n", "", width, "", printable(k.Next))
		}
	}
}

// examine checks the installation: as a running daemon sees it, or as the daemon
// would that this user could start here.
func (a *app) examine(ctx context.Context, file string) []check {
	cfg, err := a.config(file)
	if err != nil {
		return []check{failed("configuration", err)}
	}
	socket := a.configuredSocket(cfg)
	c, err := rpc.Dial(ctx, rpc.ClientOptions{Socket: socket, TokenFile: a.token, Version: a.version})
	if err != nil {
		checks := []check{passed("configuration", settingsOf(cfg.File)), directory("data", cfg.DataDir), directory("runtime", cfg.RuntimeDir)}
		if low := daemon.LowSpace(cfg.DataDir); low != "" {
			checks = append(checks, check{Name: "space", OK: true, Warning: true, Says: low})
		}
		checks = append(append(checks, ledgerCheck(ctx, cfg)...), absent(err, file))
		return append(checks, toolChecks(daemon.Tools(ctx, cfg))...)
	}
	defer func() { _ = c.Close() }()
	st, err := c.GetStatus(ctx)
	if err != nil {
		return []check{passed("configuration", settingsOf(cfg.File)), failed("daemon", err)}
	}
	checks := []check{
		configuration(cfg, st),
		passed("daemon", fmt.Sprintf("exocomp %s since %s, %d running, %d queued", st.Version, instant(st.StartedAt), st.Running, st.Queued)),
		passed("data", st.DataDir),
	}
	if socket != a.socket && rpc.FindSocket() != socket {
		checks = append(checks, check{
			Name: "socket", OK: true, Warning: true, Says: "other commands do not find this daemon by themselves: its runtime_dir is not where they look",
			Next: "export " + orchestrator.ShellCommand(rpc.SocketEnv+"="+socket),
		})
	}
	if st.Draining {
		checks = append(checks, check{Name: "drain", Says: "the daemon is draining and starts nothing", Next: "exocomp drain --off"})
	}
	checks = append(checks, toolChecks(st.Tools)...)
	for _, w := range st.Warnings {
		checks = append(checks, check{Name: "daemon", OK: true, Warning: true, Says: w})
	}
	return checks
}

// configuredSocket returns the socket of the daemon that serve would be with
// these settings, unless a person has named one: then that, or nothing where the
// environment says it. Settings that leave the directory as it is by default
// leave it to the client where it looks.
func (a *app) configuredSocket(cfg daemon.Config) string {
	if a.socket != "" || a.getenv(rpc.SocketEnv) != "" {
		return a.socket
	}
	if _, err := os.Stat(cfg.Socket()); err == nil {
		return cfg.Socket()
	}
	if byDefault, err := a.defaults(); err == nil && byDefault.RuntimeDir == cfg.RuntimeDir {
		return ""
	}
	return cfg.Socket()
}

// settingsOf names a settings file.
func settingsOf(file string) string {
	if file == "" {
		return "no file, defaults"
	}
	return file
}

// configuration compares the settings file that serve would read here with the
// one that the running daemon has read.
func configuration(cfg daemon.Config, st rpc.Status) check {
	here := cfg.File
	if absolute(&here) != nil || here == st.ConfigFile {
		return passed("configuration", settingsOf(cfg.File))
	}
	if here == "" {
		return passed("configuration", st.ConfigFile+" (the daemon's)")
	}
	its := st.ConfigFile
	if its == "" {
		its = "none"
	}
	return check{
		Name: "configuration", OK: true, Warning: true,
		Says: fmt.Sprintf("%s, but the daemon that answers has read %s", cfg.File, its),
		Next: fmt.Sprintf("name the daemon that has read it: %s=%s; or start it: exocomp serve --config %s", rpc.SocketEnv, cfg.Socket(), cfg.File),
	}
}

// absent is the line of a daemon that cannot be asked; whoever starts it starts
// it with the same settings.
func absent(err error, file string) check {
	c := failed("daemon", err)
	if file != "" && strings.HasPrefix(c.Next, "start it: ") {
		c.Next += " " + orchestrator.ShellCommand("--config", file)
	}
	return c
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
			c = check{Name: t.Name, Says: t.Error, Next: t.Hint}
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
