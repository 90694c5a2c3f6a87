package daemon

import (
	"context"

	"github.com/exocomp/exocomp/orchestrator"
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
	if !inMemory(d.cfg.RuntimeDir) {
		st.Warnings = append(st.Warnings, "the runtime directory "+d.cfg.RuntimeDir+" is not a tmpfs: saved plans and job files touch the disk; set runtime_dir in exocomp.hcl")
	}
	return st, nil
}

// Drain implements [rpc.Daemon].
func (d *Daemon) Drain(ctx context.Context, off bool) (rpc.Status, error) {
	peer := rpc.PeerFrom(ctx)
	if err := d.ledger.SetDraining(ctx, !off, peer); err != nil {
		return rpc.Status{}, err
	}
	if !off {
		running, err := d.ledger.RunningJobs(ctx)
		if err != nil {
			return rpc.Status{}, err
		}
		for _, j := range running {
			_, err := d.ledger.CancelJob(ctx, j.ID, false, peer)
			if err != nil && orchestrator.CodeOf(err) != orchestrator.CodeConflict {
				return rpc.Status{}, err // a conflict: it has just ended by itself
			}
		}
	}
	return d.GetStatus(ctx)
}
