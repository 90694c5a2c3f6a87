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
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Says string `json:"says"`
	Next string `json:"next,omitempty"`
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
				if !k.OK {
					mark = "BAD "
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

func (a *app) examine(ctx context.Context, file string) []check {
	cfg, err := a.config(file)
	if err != nil {
		return []check{failed("configuration", err)}
	}
	says := cfg.File
	if says == "" {
		says = "no file, defaults"
	}
	checks := []check{
		{"configuration", true, says, ""},
		directory("data", cfg.DataDir),
		directory("runtime", cfg.RuntimeDir),
	}
	c, err := a.dial(ctx)
	if err != nil {
		checks = append(checks, failed("daemon", err))
		for _, t := range daemon.Tools(ctx, cfg) {
			checks = append(checks, toolCheck(t))
		}
		return checks
	}
	defer func() { _ = c.Close() }()
	st, err := c.GetStatus(ctx)
	if err != nil {
		return append(checks, failed("daemon", err))
	}
	checks = append(checks, check{"daemon", true, fmt.Sprintf("exocomp %s since %s, %d running, %d queued", st.Version, instant(st.StartedAt), st.Running, st.Queued), ""})
	if st.Draining {
		checks = append(checks, check{"drain", false, "the daemon is draining and starts nothing", "exocomp drain --off"})
	}
	for _, t := range st.Tools {
		checks = append(checks, toolCheck(t))
	}
	for _, w := range st.Warnings {
		checks = append(checks, check{"warning", false, w, ""})
	}
	return checks
}

// failed is the line of a check that an error ended.
func failed(name string, err error) check {
	f := orchestrator.FailureOf(err)
	return check{name, false, f.Message, f.Hint}
}

func toolCheck(t rpc.Tool) check {
	if t.Error != "" {
		return check{t.Name, false, t.Error, ""}
	}
	return check{t.Name, true, t.Version + " " + t.Path, ""}
}

// directory checks that a directory can be made or written by this user.
func directory(name, path string) check {
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
			return check{name, false, at + " is not a directory", "move it away, or set another directory in exocomp.hcl"}
		}
		break
	}
	if err := writable(at); err != nil {
		return check{name, false, fmt.Sprintf("%s cannot be written by uid %d: %v", at, os.Getuid(), err), "run doctor as the daemon's user"}
	}
	if at != path {
		return check{name, true, path + " (serve will make it)", ""}
	}
	return check{name, true, path, ""}
}
