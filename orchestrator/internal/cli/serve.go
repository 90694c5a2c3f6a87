package cli

import (
	"log/slog"
	"os"
	"os/user"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/daemon"
	"github.com/lmittmann/tint"
	"github.com/spf13/cobra"
)

func (a *app) serveCommand() *cobra.Command {
	var file string
	var allowRoot bool
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon",
		Long: `Run the daemon in the foreground until SIGTERM or SIGINT. Running jobs are left to
their supervisors and adopted at the next start; exocomp drain ends them first.

Settings are read from exocomp.hcl, whose keys may each be left away (with other
directories for an ordinary user):

` + daemon.Settings,
	}
	c.Flags().StringVar(&file, "config", "", "settings `file` (default: EXOCOMP_CONFIG, then exocomp/exocomp.hcl below ~/.config and /etc)")
	c.Flags().BoolVar(&allowRoot, "allow-root", false, "run as root")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := a.config(file)
		var m orchestrator.Mistakes
		m.Add(err)
		if os.Getuid() == 0 && !allowRoot {
			unasked := orchestrator.Errorf(orchestrator.CodeRefused, "the daemon does not run as root unasked").
				WithHint("run it as an ordinary user or as the user exocomp; or add --allow-root")
			if err == nil {
				return unasked
			}
			m.Add(unasked)
		}
		if err := m.Err(); err != nil {
			return err
		}
		if err := absolute(&cfg.File); err != nil {
			return err
		}
		return daemon.Run(c.Context(), cfg, daemon.Options{Version: a.version, Logger: a.logger(cfg.LogLevel)})
	}
	return c
}

// config reads the daemon's settings as serve and doctor see them.
func (a *app) config(named string) (daemon.Config, error) {
	cfg, err := a.defaults()
	if err != nil {
		return cfg, err
	}
	if path := daemon.ConfigFile(named, a.getenv); path != "" {
		return daemon.Load(cfg, path)
	}
	return cfg, nil
}

// defaults are the settings of a daemon that this user starts without a file.
func (a *app) defaults() (daemon.Config, error) {
	name := ""
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return daemon.Defaults(os.Getuid(), name, a.getenv)
}

func (a *app) logger(level slog.Level) *slog.Logger {
	return slog.New(tint.NewTextHandler(a.Err, &tint.Options{Level: level, NoColor: !a.Terminal, TimeFormat: "2006-01-02 15:04:05.000"}))
}
