package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/steps/tofuapply"
	"github.com/exocomp/exocomp/orchestrator/internal/tofu"
	"github.com/exocomp/exocomp/orchestrator/internal/watch"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// AddWorkspace implements [rpc.Workspaces]. It looks at the directory and the
// files as the daemon's user, so that what the daemon cannot use is refused now
// and not by the first run.
func (d *Daemon) AddWorkspace(ctx context.Context, w orchestrator.Workspace) (orchestrator.Workspace, error) {
	if err := w.Validate(); err != nil {
		return w, err
	}
	var m orchestrator.Mistakes
	m.Add(tofu.CheckDir(w.Dir))
	for _, f := range w.VarFiles {
		m.Add(tofu.CheckFile("--var-file", f))
	}
	for _, f := range w.BackendConfig {
		if !strings.Contains(f, "=") {
			m.Add(tofu.CheckFile("--backend-config", f))
		}
	}
	if w.CLIConfig != "" {
		m.Add(tofu.CheckFile("--cli-config", w.CLIConfig))
	}
	if err := m.Err(); err != nil {
		return w, err
	}
	d.adding.Lock() // between the look at the others and the change
	defer d.adding.Unlock()
	all, err := d.ledger.Workspaces(ctx)
	if err != nil {
		return w, err
	}
	if err := refuseSecondName(all, w); err != nil {
		return w, err
	}
	if err := d.reviewLost(ctx, w.Name); err != nil && !errors.Is(err, orchestrator.ErrNotFound) {
		return w, err
	}
	added, err := d.ledger.AddWorkspace(ctx, w, rpc.PeerFrom(ctx))
	if err == nil && added.Watch {
		if err := watch.Begin(ctx, d.ledger, added); err != nil {
			d.log.Warn("the first look at a watched configuration does it", "workspace", w.Name, "err", err)
		}
	}
	return added, err
}

// refuseSecondName refuses a second name for a root module under one of its own
// workspaces: two names would not wait for each other, and what one may have
// lost would not bar the other. (A directory keeps one backend at a time, so
// that other settings of it are no other place.)
func refuseSecondName(all []orchestrator.Workspace, w orchestrator.Workspace) error {
	dir, err := os.Stat(w.Dir)
	if err != nil {
		return orchestrator.Errorf(orchestrator.CodeInternal, "look for workspaces in the same directory: %w", err)
	}
	for _, other := range all {
		if other.Name == w.Name || other.SelectedWorkspace() != w.SelectedWorkspace() {
			continue
		}
		if its, err := os.Stat(other.Dir); err == nil && os.SameFile(dir, its) {
			return orchestrator.Errorf(orchestrator.CodeConflict, "%s is workspace %s already", w.Dir, other.Name).
				WithHint("use that name, forget it (exocomp workspace remove %s), or give this one a --tofu-workspace of its own", other.Name)
		}
	}
	return nil
}

// GetWorkspace implements [rpc.Workspaces].
func (d *Daemon) GetWorkspace(ctx context.Context, name string) (orchestrator.Workspace, error) {
	return d.ledger.Workspace(ctx, name)
}

// ListWorkspaces implements [rpc.Workspaces].
func (d *Daemon) ListWorkspaces(ctx context.Context) ([]orchestrator.Workspace, error) {
	return d.ledger.Workspaces(ctx)
}

// RemoveWorkspace implements [rpc.Workspaces].
func (d *Daemon) RemoveWorkspace(ctx context.Context, name string, acceptLost bool) error {
	if err := d.reviewLost(ctx, name); err != nil {
		return err
	}
	return d.engine.Withdraw(ctx, name, func() error {
		return d.ledger.RemoveWorkspace(ctx, name, acceptLost, rpc.PeerFrom(ctx))
	})
}

// ApplyWorkspace implements [rpc.Workspaces].
func (d *Daemon) ApplyWorkspace(ctx context.Context, key, name string, acceptLost bool) (orchestrator.Job, error) {
	if err := d.reviewLost(ctx, name); err != nil {
		return orchestrator.Job{}, err
	}
	return d.submitJob(ctx, key, orchestrator.JobWorkspaceApply, name, orchestrator.JobSpec{AcceptLost: acceptLost})
}

// RefreshWorkspace implements [rpc.Workspaces].
func (d *Daemon) RefreshWorkspace(ctx context.Context, key, name string) (orchestrator.Job, error) {
	return d.submitJob(ctx, key, orchestrator.JobWorkspaceApply, name, orchestrator.JobSpec{RefreshOnly: true})
}

func (d *Daemon) submitJob(ctx context.Context, key string, kind orchestrator.JobKind, workspace string, spec orchestrator.JobSpec) (orchestrator.Job, error) {
	return d.ledger.SubmitJob(ctx, orchestrator.NewJob{
		Key: key, Kind: kind, Workspace: workspace, Spec: spec, By: rpc.PeerFrom(ctx),
	})
}

// UnlockWorkspace implements [rpc.Workspaces]. It is refused while the daemon
// itself works in the workspace: the lock may then be its own. Work that begins
// after that look takes a lock of another id, which this cannot break.
func (d *Daemon) UnlockWorkspace(ctx context.Context, name, lockID string) error {
	w, err := d.ledger.Workspace(ctx, name)
	if err != nil {
		return err
	}
	turns, err := d.ledger.Turns(ctx, name)
	if err != nil {
		return err
	}
	if len(turns) > 0 {
		holder := string(turns[0].Run) + string(turns[0].Job)
		return orchestrator.Errorf(orchestrator.CodeConflict, "%s is working in workspace %s, the lock may be its own", holder, name).
			WithHint("wait for it, or cancel it first")
	}
	m, err := d.module(ctx, w)
	if err != nil {
		return err
	}
	if err := m.Unlock(ctx, lockID); err != nil {
		return err
	}
	return d.ledger.AppendEvent(ctx, orchestrator.Event{
		Kind: orchestrator.EventStateUnlocked, Workspace: name, By: rpc.PeerFrom(ctx),
		Message: fmt.Sprintf("state lock %s of workspace %s broken", lockID, name),
	})
}

// reviewLost looks whether creates that an interrupted apply may have lost are
// in the state by now, say because a person imported them; those no longer bar
// an apply. A state that cannot be read changes nothing: the ledger then
// refuses, naming the addresses.
func (d *Daemon) reviewLost(ctx context.Context, name string) error {
	w, err := d.ledger.Workspace(ctx, name)
	if err != nil || len(w.Lost) == 0 {
		return err
	}
	found, err := d.foundLost(ctx, w)
	if err != nil {
		d.log.Warn("look for lost creates", "workspace", name, "err", err)
		return nil
	}
	if len(found) == 0 {
		return nil
	}
	return d.ledger.FoundLost(ctx, name, found)
}

func (d *Daemon) foundLost(ctx context.Context, w orchestrator.Workspace) ([]string, error) {
	m, err := d.module(ctx, w)
	if err != nil {
		return nil, err
	}
	found, _, err := tofuapply.Suspects(ctx, m, w.Lost)
	return found, err
}
