package daemon

import (
	"bytes"
	"context"
	"os"
	"path/filepath"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/ansible/supervised"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
	"github.com/exocomp/exocomp/orchestrator/internal/engine"
	"github.com/exocomp/exocomp/orchestrator/internal/hostkeys"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/internal/steps/onboard"
	"github.com/exocomp/exocomp/orchestrator/internal/steps/play"
	"github.com/exocomp/exocomp/orchestrator/internal/steps/sshwait"
	"github.com/exocomp/exocomp/orchestrator/internal/steps/tofuapply"
	"github.com/exocomp/exocomp/orchestrator/internal/tofu"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/exocomp/exocomp/seeds"
)

// wire makes the handlers and the engine over what is open. cleanBefore says
// whether the daemon before this one stopped in order.
func (d *Daemon) wire(cleanBefore bool) {
	runner := &supervised.Runner{Pins: d.ledger, Locate: d.tools.ansible, FleetKey: d.fleet.Private(), RootByDefault: os.Geteuid() == 0, Vendor: d.vendor.current}
	d.pins = &engine.PinStore{Store: d.ledger}
	pinner := &hostkeys.Pinner{Store: d.pins}
	onboarder := &onboard.Handler{
		Ledger: d.ledger, Pinner: pinner, Runner: runner,
		Snapshots: d.snapshots, AutomationUser: d.cfg.AutomationUser, FleetPublic: d.fleet.PublicLine(),
	}
	player := &play.Handler{
		Ledger: d.ledger, Pinner: pinner, Runner: runner, Snapshots: d.snapshots, AutomationUser: d.cfg.AutomationUser,
		Env: d.provisionEnv,
	}
	d.engine = engine.New(engine.Config{
		Ledger:    d.ledger,
		Publisher: d.publisher,
		Logger:    d.log,
		Pool: jobs.Config{
			DataDir: d.cfg.DataDir, RuntimeDir: d.cfg.RuntimeDir, Workers: d.cfg.Workers,
			Logger: d.log, CleanStop: cleanBefore,
		},
		Handlers: engine.Handlers{
			TofuApply: &tofuapply.Handler{
				Ledger:    d.ledger,
				Locate:    d.tools.tofu,
				Preflight: func(ctx context.Context) error { _, err := d.tools.ansible(ctx); return err },
				Variables: d.tofuVariables(),
				Daemon:    d.daemonEnv(),
				InitDir:   d.initDir(),
				Artifacts: d.publisher.InventoryPath,
			},
			SSHWait:     &sshwait.Handler{Ledger: d.ledger},
			HostOnboard: onboarder, Onboard: onboarder,
			AnsiblePlay: player, Play: player,
		},
	})
	d.pins.Engine = d.engine
}

// tofuVariables are given to every tofu as TF_VAR_<name>: OpenTofu passes over
// those that a configuration does not declare.
func (d *Daemon) tofuVariables() map[string]string {
	return map[string]string{"exocomp_fleet_pubkey": d.fleet.PublicLine()}
}

// daemonEnv leads the provider of a tofu that this daemon runs back to it.
func (d *Daemon) daemonEnv() []string { return []string{rpc.SocketEnv + "=" + d.cfg.Socket()} }

// module is a workspace for the daemon's own short children.
func (d *Daemon) module(ctx context.Context, w orchestrator.Workspace) (tofu.Module, error) {
	install, err := d.tools.tofu(ctx)
	if err != nil {
		return tofu.Module{}, err
	}
	return tofu.Module{Install: install, Workspace: w, TempDir: d.cfg.RuntimeDir, Variables: d.tofuVariables()}, nil
}

func (d *Daemon) seedDir() string { return filepath.Join(d.cfg.DataDir, "seeds") }

func (d *Daemon) initDir() string { return filepath.Join(d.cfg.DataDir, "init") }

// writeSeeds lays out the seeded playbooks for people who run a step by hand. What
// is there already takes no room on a disk that is full.
func writeSeeds(dir string) error {
	if err := durable.Mkdir(dir); err != nil {
		return err
	}
	for _, name := range []string{seeds.WaitSSH, seeds.Onboard, seeds.Verify, seeds.VerifyLogin} {
		path, want := filepath.Join(dir, name), seeds.Read(name)
		if has, err := durable.ReadRegular(path, int64(len(want))); err == nil && bytes.Equal(has, want) {
			continue
		}
		if err := durable.WriteFile(path, want, durable.PrivateFile); err != nil {
			return err
		}
	}
	return nil
}
