package provider

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// provisionResource is exocomp_provision: a workspace whose hosts have been
// through the chain.
type provisionResource struct{ daemon *daemon }

var (
	_ resource.ResourceWithConfigure      = (*provisionResource)(nil)
	_ resource.ResourceWithValidateConfig = (*provisionResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*provisionResource)(nil)
	_ resource.ResourceWithImportState    = (*provisionResource)(nil)
)

// provisionType and provisionVersion are how OpenTofu's state names the resource
// and the version of its schema.
const (
	provisionType    = "exocomp_provision"
	provisionVersion = 0
)

func newProvisionResource() resource.Resource { return &provisionResource{} }

func (r *provisionResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = provisionType
}

func (r *provisionResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = provisionSchema(ctx)
}

func (r *provisionResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.daemon = daemonOf(req.ProviderData, &resp.Diagnostics)
}

// ValidateConfig finds what the daemon would refuse, as far as values are known:
// OpenTofu asks at validate, plan and apply.
func (r *provisionResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config provisionModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	checkVars(ctx, &config, &resp.Diagnostics)
	checkHosts(ctx, &config, &resp.Diagnostics)
}

// ModifyPlan decides whether there is something to do besides what differs in
// the configuration: a playbook that has changed, or a run that is not yet, or
// never was, successful. It never asks the daemon.
func (r *provisionResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return // destroy
	}
	var plan provisionModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	var state *provisionModel
	if !req.State.Raw.IsNull() {
		state = new(provisionModel)
		resp.Diagnostics.Append(req.State.Get(ctx, state)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	settle(ctx, &plan, state, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

// Create makes the daemon's chain of the resource and follows it. The owner's
// token is kept before anything is asked for, so that every end keeps it.
func (r *provisionResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan, config provisionModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	own := ownership{Owner: newOwner()}
	resp.Diagnostics.Append(own.save(ctx, resp.Private)...)
	limit, diags := plan.Timeouts.Create(ctx, defaultEnsureTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	e := ensuring{daemon: r.daemon, own: own, limit: limit, create: true}
	if e.ensure(ctx, &plan, config.SecretsWO, &resp.Diagnostics) {
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	}
}

// Read refreshes what became of the resource's own run. Where the daemon cannot
// say, the state stays and a warning tells why: the hosts are there all the same.
func (r *provisionResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state provisionModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	own := readOwnership(ctx, req.Private, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ref, fresh := state.RunID.ValueString(), false
	if ref == "" {
		if fresh = own.Imported; !fresh {
			return // an apply was interrupted before there was a run
		}
		ref = state.Workspace.ValueString()
	}
	run, err := r.read(ctx, ref)
	switch {
	case err == nil && !fresh && run.State == orchestrator.RunSucceeded && state.Status.ValueString() == string(run.State):
		// It is final, and the state has it all.
	case err == nil:
		resp.Diagnostics.Append(state.record(ctx, run)...)
		resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	case fresh:
		resp.Diagnostics.AddError("Workspace "+ref+" cannot be imported", explain(err))
	case errors.Is(err, orchestrator.ErrNotFound):
		resp.Diagnostics.AddWarning("The daemon does not know run "+ref,
			"Its data directory is another one, or the run was pruned. The state stays as it is, and nothing is created again; "+
				"the next change runs the chain anew.")
	default:
		resp.Diagnostics.AddWarning("Run "+ref+" could not be refreshed", "The state stays as it is. "+explain(err))
	}
}

// readTimeout bounds a refresh, which a plan waits for.
const readTimeout = 30 * time.Second

func (r *provisionResource) read(ctx context.Context, ref string) (run orchestrator.Run, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	err = r.daemon.with(ctx, func(c *rpc.Client) error {
		run, err = c.GetRun(ctx, ref)
		return err
	})
	return run, err
}

// Update makes sure of the chain that the plan describes: the daemon knows
// whether that is a run that is there already.
func (r *provisionResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, config provisionModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	own := readOwnership(ctx, req.Private, &resp.Diagnostics)
	if own.Owner == "" {
		own.Owner = newOwner()
		resp.Diagnostics.Append(own.save(ctx, resp.Private)...)
	}
	limit, diags := plan.Timeouts.Update(ctx, defaultEnsureTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	e := ensuring{daemon: r.daemon, own: own, limit: limit}
	if e.ensure(ctx, &plan, config.SecretsWO, &resp.Diagnostics) {
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	}
	if own.Imported && e.answered {
		own.Imported = false // the workspace is the resource's now
		resp.Diagnostics.Append(own.save(ctx, resp.Private)...)
	}
}

// Delete ends the resource: the leave play if there is one, then the workspace
// is given back. Only where there is nothing to run may the daemon be away.
func (r *provisionResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state provisionModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	own := readOwnership(ctx, req.Private, &resp.Diagnostics)
	limit, diags := state.Timeouts.Delete(ctx, defaultDeleteTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	// OpenTofu drops the private state of a tainted resource that it replaces:
	// the daemon then knows the resource by its run.
	if own.Imported && own.Owner == "" {
		resp.Diagnostics.AddWarning("Workspace "+state.Workspace.ValueString()+" is only forgotten",
			"It was imported and never applied, so it is not the resource's: the daemon keeps its inventory, its pins and its runs.")
		return
	}
	if own.Owner == "" && state.RunID.IsNull() {
		return // an apply was interrupted before the daemon knew of it
	}
	e := ending{daemon: r.daemon, own: own, limit: limit}
	e.end(ctx, &state, &resp.Diagnostics)
}

// ImportState takes a workspace that the daemon knows. The read that follows
// fills in its newest run; the first update claims it.
func (r *provisionResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	if err := orchestrator.ValidateWorkspaceName(req.ID); err != nil {
		resp.Diagnostics.AddError("No name of a workspace", explain(err))
		return
	}
	name := types.StringValue(req.ID)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), name)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("workspace"), name)...)
	resp.Diagnostics.Append(ownership{Imported: true}.save(ctx, resp.Private)...)
}
