package daemon

import (
	"context"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// SubmitPlaybook implements [rpc.Playbooks]. What is wrong with the run, or with
// the inventory, is refused now, and nothing is queued.
func (d *Daemon) SubmitPlaybook(ctx context.Context, key, inventory string, spec orchestrator.JobSpec) (orchestrator.Job, error) {
	spec.Schedule = ""
	if err := d.checkPlaybook(&spec); err != nil {
		return orchestrator.Job{}, err
	}
	row, err := d.engine.StandingInventory(ctx, inventory)
	if err != nil {
		return orchestrator.Job{}, err
	}
	return d.ledger.SubmitJob(ctx, orchestrator.NewJob{
		Key: key, Kind: orchestrator.JobPlaybookRun, Workspace: row.Workspace, Spec: spec, By: rpc.PeerFrom(ctx),
	})
}

// checkPlaybook validates a playbook run against this machine, adds what the rule
// of its path grants, and gives its arguments their long form.
func (d *Daemon) checkPlaybook(spec *orchestrator.JobSpec) error {
	if err := spec.ValidatePlaybookRun(); err != nil {
		return err
	}
	grant(d.cfg.Rules, spec)
	run := orchestrator.RunSpec{
		Playbook: spec.Play.Playbook, Vars: spec.Play.Vars, SSHIdentities: spec.Play.SSHIdentities,
		Args: spec.Args, Egress: spec.Egress, SSHWait: orchestrator.DefaultSSHWait,
	}
	if err := d.checkSpec(orchestrator.RunProvision, &run); err != nil {
		return err
	}
	*spec = orchestrator.JobSpec{
		Play: spec.Play, Args: run.Args, Egress: spec.Egress,
		NoAdmit: spec.NoAdmit, KeepGoing: spec.KeepGoing, Schedule: spec.Schedule,
	}
	return nil
}
