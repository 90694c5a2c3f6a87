package daemon

import (
	"context"

	"github.com/exocomp/exocomp/orchestrator/rpc"
)

var _ rpc.Service = (*Daemon)(nil)

// GetStatus implements [rpc.Daemon].
func (d *Daemon) GetStatus(ctx context.Context) (rpc.Status, error) {
	st := rpc.Status{
		Version: d.opts.Version, StartedAt: d.startedAt, DataDir: d.cfg.DataDir, ConfigFile: d.cfg.File,
		Workers: d.cfg.Workers, Tools: d.tools.report(ctx),
	}
	var err error
	if st.LastEvent, err = d.ledger.LastEventID(ctx); err != nil {
		return st, err
	}
	if st.Draining, err = d.ledger.Draining(ctx); err != nil {
		return st, err
	}
	if st.Running, st.Queued, err = d.ledger.CountJobs(ctx); err != nil {
		return st, err
	}
	if damage := d.damage.Load(); damage != nil && *damage != nil {
		st.Warnings = append(st.Warnings, (*damage).Error())
	}
	space, err := d.spaceWarnings(ctx)
	if err != nil {
		return st, err
	}
	st.Warnings = append(st.Warnings, space...)
	if !inMemory(d.cfg.RuntimeDir) {
		st.Warnings = append(st.Warnings, "the runtime directory "+d.cfg.RuntimeDir+" is not a tmpfs: saved plans and job files touch the disk; set runtime_dir in exocomp.hcl")
	}
	return st, nil
}

// Drain implements [rpc.Daemon]. The pool ends what runs as soon as it sees that
// the ledger drains, and in order.
func (d *Daemon) Drain(ctx context.Context, off bool) (rpc.Status, error) {
	if err := d.ledger.SetDraining(ctx, !off, rpc.PeerFrom(ctx)); err != nil {
		return rpc.Status{}, err
	}
	return d.GetStatus(ctx)
}
