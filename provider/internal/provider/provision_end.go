package provider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// ending is one Delete.
type ending struct {
	daemon *daemon
	own    ownership
	limit  time.Duration

	last orchestrator.ProvisionEnd // what the daemon said last
}

// end gives the workspace back, after the leave play if there is one. Without an
// error the resource is gone.
func (e *ending) end(ctx context.Context, state *provisionModel, diags *diag.Diagnostics) {
	workspace, leave := state.Workspace.ValueString(), state.DestroyPlaybook.ValueString()
	limited, cancel := within(ctx, e.limit)
	defer cancel()
	req := orchestrator.EndProvision{
		Workspace: workspace,
		Owner:     orchestrator.NewSecret(e.own.Owner),
		Run:       orchestrator.RunID(state.RunID.ValueString()),
		Attempt:   orchestrator.NewSecret(os.Getenv(attemptEnv)),
	}
	if leave != "" {
		if req.Leave = leavePlay(ctx, state, diags); diags.HasError() {
			return
		}
	}
	var unread error
	c, err := e.daemon.insist(limited, func(c *rpc.Client) error {
		if leave != "" {
			req.Leave.Playbook, unread = c.UploadPlaybook(limited, leave)
		}
		return unread
	})
	away := c == nil && errors.Is(err, orchestrator.ErrUnavailable)
	if err == nil {
		defer c.Close()
		err = e.ask(limited, c, req)
	}
	switch {
	case away && leave == "" && ctx.Err() == nil:
		diags.AddWarning(fmt.Sprintf("Workspace %s is only forgotten", workspace),
			"The daemon is away: it keeps the inventory, the pins and a run that may be going on. "+explain(err))
	case err == nil && e.last.Stranger:
		diags.AddWarning(fmt.Sprintf("Workspace %s is not this resource's", workspace),
			"Another resource has it, so the daemon did nothing, and this one is only forgotten.")
	case err == nil && e.last.Ended:
	case err == nil:
		diags.AddError(fmt.Sprintf("Workspace %s was not given back", workspace), "The daemon has stopped telling. Destroy again to follow it."+e.follow())
	case ctx.Err() != nil:
		diags.AddError("Interrupted while the resource was ending", "Destroy again to follow it."+e.follow())
	case limited.Err() != nil:
		diags.AddError(fmt.Sprintf("Workspace %s was not given back within %s", workspace, e.limit),
			"Destroy again to follow it; more time is given by timeouts = { delete = \"2h\" }, applied before."+e.follow())
	case errors.Is(err, orchestrator.ErrUnavailable) && leave != "":
		diags.AddError("The leave play needs the daemon", explain(err)+
			"\n\nTo forget the resource without its destroy_playbook, remove that attribute and apply, or `tofu state rm ADDRESS`."+e.follow())
	case unread != nil:
		diags.AddError("The leave play cannot be read", explain(err)+
			"\n\nPut the playbook back; or, to forget the resource without it, `tofu state rm ADDRESS`.")
	case e.last.Job != "":
		diags.AddError(fmt.Sprintf("The leave play of workspace %s failed", workspace),
			explain(err)+"\n\nDestroying again runs it again."+e.follow())
	default:
		diags.AddError(fmt.Sprintf("Workspace %s was not given back", workspace), explain(err))
	}
}

// ask follows the end.
func (e *ending) ask(ctx context.Context, c *rpc.Client, req orchestrator.EndProvision) error {
	return c.EndProvision(ctx, req, func(step orchestrator.ProvisionEnd) error {
		e.last = step
		tflog.Info(ctx, "end", map[string]any{"run": string(step.Run), "job": string(step.Job), "ended": step.Ended})
		return nil
	})
}

// leavePlay returns the leave play, but for its playbook. What is wrong with the
// inputs goes to diags.
func leavePlay(ctx context.Context, state *provisionModel, diags *diag.Diagnostics) *orchestrator.PlaySpec {
	var play orchestrator.PlaySpec
	if v, ok := dynamic(ctx, state.Vars, "vars", diags); ok {
		var err error
		if play.Vars, err = varsDocument(v); err != nil {
			diags.AddError("Invalid variables", explain(err))
		}
	}
	diags.Append(state.SSHIdentities.ElementsAs(ctx, &play.SSHIdentities, false)...)
	return &play
}

// follow names what the daemon is at.
func (e *ending) follow() string {
	switch {
	case e.last.Job != "":
		return fmt.Sprintf("\n\nNext: exocomp jobs logs %s", e.last.Job)
	case e.last.Run != "":
		return fmt.Sprintf("\n\nNext: exocomp provision status %s", e.last.Run)
	}
	return ""
}
