package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/internal/ledger"
)

const maintenanceInterval = 6 * time.Hour

// maintain removes what is older than its retention, and checks the ledger. It
// begins when the jobs of the daemon before are taken up: what they did stands in
// the directories that are pruned.
func (d *Daemon) maintain(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-d.engine.Recovered():
	}
	t := time.NewTicker(maintenanceInterval)
	defer t.Stop()
	for {
		d.prune(ctx, time.Now().Add(-orchestrator.LogRetention))
		d.check(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// prune removes the logs, snapshots, progress, fires, retired pins and vendored
// content that nobody may ask for any more. What fails is logged and tried again the next time.
func (d *Daemon) prune(ctx context.Context, before time.Time) {
	for what, prune := range map[string]func(context.Context, time.Time) error{
		"logs":         d.pruneLogs,
		"snapshots":    d.pruneSnapshots,
		"progress":     func(ctx context.Context, _ time.Time) error { _, err := d.ledger.PruneProgress(ctx); return err },
		"fires":        d.ledger.PruneFires,
		"vendored":     func(ctx context.Context, _ time.Time) error { return d.pruneVendored(ctx) },
		"retired pins": func(ctx context.Context, _ time.Time) error { _, err := d.ledger.PruneRetiredPins(ctx); return err },
	} {
		if err := prune(ctx, before); err != nil && ctx.Err() == nil {
			d.log.Error("prune "+what, "err", err)
		}
	}
}

// CheckLedger reads the whole ledger of a daemon that does not run, for `exocomp
// doctor`. One that is not there yet is [orchestrator.CodeNotFound].
func CheckLedger(ctx context.Context, cfg Config) (err error) {
	if err := cfg.refuseLostLedger(); err != nil {
		return err
	}
	l, err := ledger.Open(ctx, cfg.Ledger(), ledger.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	return l.Check(ctx)
}

// check reads the whole ledger; damage is a warning of the daemon's status.
func (d *Daemon) check(ctx context.Context) {
	err := d.ledger.Check(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		d.log.Error("check ledger", "err", err)
		err = orchestrator.FailureOf(err).Err()
	}
	d.damage.Store(&err)
}

func (d *Daemon) pruneLogs(ctx context.Context, before time.Time) error {
	running, err := d.ledger.RunningJobs(ctx)
	if err != nil {
		return err
	}
	keep := map[orchestrator.AttemptID]bool{}
	for _, j := range running {
		keep[j.Attempt.ID] = true
	}
	return jobs.Prune(ctx, d.cfg.DataDir, before, keep)
}

func (d *Daemon) pruneSnapshots(ctx context.Context, before time.Time) error {
	digests, err := d.ledger.SnapshotsInUse(ctx, before)
	if err != nil {
		return err
	}
	return d.snapshots.prune(before, digests)
}
