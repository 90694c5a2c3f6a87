package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
	"github.com/exocomp/exocomp/orchestrator/internal/engine"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/internal/ledger"
	"github.com/exocomp/exocomp/orchestrator/internal/publish"
	"github.com/exocomp/exocomp/orchestrator/internal/secrets"
	"github.com/exocomp/exocomp/orchestrator/internal/watch"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"golang.org/x/sync/errgroup"
)

// Options are what the caller of [Run] decides besides the settings.
type Options struct {
	Version string
	Logger  *slog.Logger
}

// Daemon is one daemon over one data directory.
type Daemon struct {
	cfg       Config
	opts      Options
	log       *slog.Logger
	startedAt time.Time

	ledger    *ledger.Ledger
	identity  *secrets.Identity
	fleet     *secrets.Fleet
	snapshots *snapshots
	vendor    *vendor
	publisher *publish.Publisher
	tools     *tools
	pins      *engine.PinStore
	engine    *engine.Engine

	denials   denials
	followers followers             // the resources that are waited for
	damage    atomic.Pointer[error] // what the newest check of the ledger found
	adding    sync.Mutex            // held while a workspace is compared with the others and added
}

// ledgerReserve is the room that a full disk leaves for cancellations, outcomes
// and the daemon's end.
const ledgerReserve = 4 << 20

// Run is `exocomp serve`: it opens the data directory, listens, recovers, and
// works until ctx ends. Running tools are then left to their supervisors.
func Run(ctx context.Context, cfg Config, opts Options) (err error) {
	for _, dir := range []string{cfg.DataDir, cfg.RuntimeDir} {
		if err := CheckDirectory(dir); err != nil {
			return err
		}
		if err := durable.Mkdir(dir); err != nil {
			return orchestrator.Errorf(orchestrator.CodeFailed, "%w", err).
				WithHint("give uid %d that directory, or set another one in exocomp.hcl (data_dir, runtime_dir)", os.Getuid())
		}
	}
	if err := cfg.refuseLostLedger(); err != nil {
		return err
	}
	if err := jobs.MakeDirs(cfg.DataDir, cfg.RuntimeDir); err != nil {
		return err
	}
	// The ledger first: its lock keeps a second daemon off everything below.
	l, err := ledger.Open(ctx, cfg.Ledger(), ledger.Options{Reserve: ledgerReserve})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	d := &Daemon{cfg: cfg, opts: opts, log: opts.Logger, startedAt: time.Now(), ledger: l}
	if err := d.open(ctx); err != nil {
		return fullHint(cfg.DataDir, err)
	}
	listener, server, err := d.listen()
	if err != nil {
		return fullHint(cfg.RuntimeDir, err)
	}
	// Last of all: from here on only a crash keeps the end from being noted.
	clean, err := d.ledger.StartDaemon(ctx, opts.Version, os.Getpid())
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	d.wire(clean)
	d.log.Info("daemon is ready", "version", opts.Version, "socket", cfg.Socket(), "data", cfg.DataDir)
	return d.serve(ctx, listener, server)
}

// open opens what the data directory holds besides the ledger.
func (d *Daemon) open(ctx context.Context) (err error) {
	if d.identity, err = secrets.LoadOrCreateIdentity(d.cfg.identityFile()); err != nil {
		return err
	}
	if d.fleet, err = secrets.FleetKey(ctx, d.ledger, d.identity); err != nil {
		return err
	}
	if d.snapshots, err = openSnapshots(filepath.Join(d.cfg.DataDir, "snapshots")); err != nil {
		return err
	}
	if d.vendor, err = openVendor(filepath.Join(d.cfg.DataDir, "vendor")); err != nil {
		return err
	}
	d.publisher = &publish.Publisher{DataDir: d.cfg.DataDir}
	d.tools = newTools(d.cfg, d.cfg.RuntimeDir)
	// The publisher and the snapshots sweep their own; the jobs remove theirs whole.
	for _, dir := range []string{d.cfg.RuntimeDir, d.initDir(), d.seedDir()} {
		if err := durable.Sweep(dir); err != nil {
			return err
		}
	}
	return writeSeeds(d.seedDir())
}

func (d *Daemon) listen() (net.Listener, *rpc.Server, error) {
	tokens, err := rpc.EnsureTokens(d.cfg.RuntimeDir)
	if err != nil {
		return nil, nil, err
	}
	listener, err := rpc.Listen(d.cfg.Socket(), rpc.ListenOptions{Logger: d.log})
	if err != nil {
		return nil, nil, err
	}
	return listener, rpc.NewServer(d, rpc.ServerOptions{
		Version: d.opts.Version, Tokens: tokens, Logger: d.log, Denied: d.denied,
	}), nil
}

// serve runs the services until ctx ends or one of them fails, then notes the
// orderly end.
func (d *Daemon) serve(ctx context.Context, listener net.Listener, server *rpc.Server) error {
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return server.Serve(gctx, listener) })
	g.Go(func() error { return d.engine.Run(gctx) })
	g.Go(func() error { return d.maintain(gctx) })
	g.Go(func() error { return d.runSchedules(gctx) })
	g.Go(func() error { return watch.New(d.ledger, d.log).Run(gctx) })
	if err := g.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	d.log.Info("daemon stops; running jobs are left to their supervisors")
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return d.ledger.StopDaemon(stopCtx)
}
