package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
	"github.com/exocomp/exocomp/orchestrator/internal/engine"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/internal/ledger"
	"github.com/exocomp/exocomp/orchestrator/internal/publish"
	"github.com/exocomp/exocomp/orchestrator/internal/secrets"
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
	fleet     *secrets.Fleet
	snapshots *snapshots
	publisher *publish.Publisher
	tools     *tools
	pins      *engine.PinStore
	engine    *engine.Engine

	adding sync.Mutex // held while a workspace is compared with the others and added
}

// Run is `exocomp serve`: it opens the data directory, listens, recovers, and
// works until ctx ends. Running tools are then left to their supervisors.
func Run(ctx context.Context, cfg Config, opts Options) (err error) {
	for _, dir := range []string{cfg.DataDir, cfg.RuntimeDir} {
		if err := durable.Mkdir(dir); err != nil {
			return orchestrator.Errorf(orchestrator.CodeFailed, "%w", err).
				WithHint("give uid %d that directory, or set another one in exocomp.hcl (data_dir, runtime_dir)", os.Getuid())
		}
	}
	// The ledger first: its lock keeps a second daemon off everything below.
	l, err := ledger.Open(ctx, cfg.Ledger(), ledger.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	d := &Daemon{cfg: cfg, opts: opts, log: opts.Logger, startedAt: time.Now(), ledger: l}
	if err := d.open(ctx); err != nil {
		return err
	}
	start, err := d.begin(ctx)
	if err != nil {
		return err
	}
	d.wire(start)
	listener, server, err := d.listen()
	if err != nil {
		return err
	}
	d.log.Info("daemon is ready", "version", opts.Version, "socket", cfg.Socket(), "data", cfg.DataDir)
	return d.serve(ctx, listener, server)
}

// open opens what the data directory holds besides the ledger.
func (d *Daemon) open(ctx context.Context) error {
	identity, err := secrets.LoadOrCreateIdentity(filepath.Join(d.cfg.DataDir, "identity.txt"))
	if err != nil {
		return err
	}
	if d.fleet, err = secrets.FleetKey(ctx, d.ledger, identity); err != nil {
		return err
	}
	if d.snapshots, err = openSnapshots(filepath.Join(d.cfg.DataDir, "snapshots")); err != nil {
		return err
	}
	d.publisher = &publish.Publisher{DataDir: d.cfg.DataDir}
	d.tools = newTools(d.cfg)
	return writeSeeds(d.seedDir())
}

// begin notes the start in the ledger and learns how the daemon before ended.
func (d *Daemon) begin(ctx context.Context) (orchestrator.DaemonStart, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return orchestrator.DaemonStart{}, fmt.Errorf("read boot id: %w", err)
	}
	return d.ledger.StartDaemon(ctx, strings.TrimSpace(string(boot)), d.opts.Version, os.Getpid())
}

func (d *Daemon) listen() (net.Listener, *rpc.Server, error) {
	tokens, err := rpc.EnsureTokens(d.cfg.RuntimeDir)
	if err != nil {
		return nil, nil, err
	}
	listener, err := rpc.Listen(d.cfg.Socket(), rpc.ListenOptions{})
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
	if err := g.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	d.log.Info("daemon stops; running jobs are left to their supervisors")
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return d.ledger.StopDaemon(stopCtx)
}

const (
	maintenanceInterval = 6 * time.Hour
	logRetention        = 30 * 24 * time.Hour
)

// maintain removes what is older than its retention.
func (d *Daemon) maintain(ctx context.Context) error {
	t := time.NewTicker(maintenanceInterval)
	defer t.Stop()
	for {
		if err := jobs.Prune(ctx, d.cfg.DataDir, time.Now().Add(-logRetention)); err != nil && ctx.Err() == nil {
			d.log.Error("prune logs", "err", err)
		}
		if _, err := d.ledger.PruneRetiredPins(ctx); err != nil && ctx.Err() == nil {
			d.log.Error("prune retired pins", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// denied records a call that was refused for its token.
func (d *Daemon) denied(ctx context.Context, method string, err error) {
	peer := rpc.PeerFrom(ctx)
	d.log.Warn("call denied", "method", method, "uid", peer.UID, "err", err)
	event := orchestrator.Event{
		Kind: orchestrator.EventCallDenied, Warning: true, By: peer,
		Message: fmt.Sprintf("%s denied to uid %d: %s", filepath.Base(method), peer.UID, orchestrator.FailureOf(err).Message),
	}
	if err := d.ledger.AppendEvent(ctx, event); err != nil {
		d.log.Error("record denied call", "err", err)
	}
}
