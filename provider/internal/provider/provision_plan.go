package provider

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/exocomp/exocomp/orchestrator"
)

// checkVars finds mistakes in the attribute `vars`, as far as it is known.
func checkVars(ctx context.Context, config *provisionModel, diags *diag.Diagnostics) {
	v, ok := dynamic(ctx, config.Vars, "vars", diags)
	if !ok {
		return
	}
	names := secretNames{attribute: "vars"}
	names.variables(v, rootPlace("vars"))
	diags.Append(names.found()...)
	if names.diags.HasError() || !v.IsFullyKnown() {
		return
	}
	if _, err := varsDocument(v); err != nil {
		diags.AddAttributeError(path.Root("vars"), "Invalid variables", explain(err))
	}
}

// checkHosts finds mistakes in the attribute `inventory`, as far as it is known.
func checkHosts(ctx context.Context, config *provisionModel, diags *diag.Diagnostics) {
	v, ok := dynamic(ctx, config.Inventory, "inventory", diags)
	if !ok {
		return
	}
	names := secretNames{attribute: "inventory"}
	if isTree(v) {
		names.groups(v, rootPlace("inventory"))
	} else {
		names.hostMap(v, rootPlace("inventory"))
	}
	diags.Append(names.found()...)
	if names.diags.HasError() || !v.IsFullyKnown() || config.Workspace.IsUnknown() {
		return
	}
	if orchestrator.ValidateWorkspaceName(config.Workspace.ValueString()) != nil {
		return // said where the name stands
	}
	handed, err := handOver(v)
	if err == nil {
		err = checkInventory(config.Workspace.ValueString(), handed, knownTexts(ctx, config.SSHIdentities))
	}
	if err != nil {
		diags.AddAttributeError(path.Root("inventory"), "Invalid inventory", explain(err))
	}
}

// dynamic returns what a dynamic attribute holds; ok is false where it is null
// or not known at all.
func dynamic(ctx context.Context, v types.Dynamic, name string, diags *diag.Diagnostics) (value tftypes.Value, ok bool) {
	if v.IsNull() || v.IsUnknown() || v.IsUnderlyingValueNull() || v.IsUnderlyingValueUnknown() {
		return tftypes.Value{}, false
	}
	value, err := raw(ctx, v.UnderlyingValue())
	if err != nil {
		diags.AddAttributeError(path.Root(name), "The value cannot be read", explain(err))
		return tftypes.Value{}, false
	}
	return value, true
}

// varsDocument returns a known value of `vars` as the daemon takes it.
func varsDocument(v tftypes.Value) (json.RawMessage, error) {
	doc, err := document(v)
	if err != nil {
		return nil, err
	}
	return doc, orchestrator.ValidateVars(doc)
}

// knownTexts returns the elements of a list of strings, none for null, and nil
// while one is not known.
func knownTexts(ctx context.Context, list types.List) []string {
	texts := []string{}
	if list.IsNull() {
		return texts
	}
	if list.IsUnknown() || list.ElementsAs(ctx, &texts, false).HasError() {
		return nil
	}
	return texts
}

// settle gives the computed values of the plan: those of the state where an
// apply would change nothing, unknown ones otherwise. None is worked out for an
// apply to come, since OpenTofu plans again while it applies and takes it amiss
// if a file has changed meanwhile.
func settle(ctx context.Context, plan, state *provisionModel, diags *diag.Diagnostics) {
	plan.ID = plan.Workspace
	same := state != nil && plan.sameInputs(state)
	digest, known := plannedDigest(ctx, plan, same, diags)
	if same && known && state.Status.ValueString() == string(orchestrator.RunSucceeded) &&
		digest == state.PlaybookDigest.ValueString() {
		plan.keep(state)
		return
	}
	plan.forget()
}

// plannedDigest returns the digest of the playbooks as they are now; known is
// false where something that this apply makes will decide it. A playbook that is
// missing is a mistake only where nothing else changes, and nothing will write it.
func plannedDigest(ctx context.Context, plan *provisionModel, same bool, diags *diag.Diagnostics) (digest string, known bool) {
	known = true
	take := func(attribute string, file types.String) string {
		if file.IsUnknown() {
			known = false
			return ""
		}
		d, err := treeDigest(ctx, file.ValueString())
		if err == nil {
			return d
		}
		known = false
		if same || !errors.Is(err, orchestrator.ErrNotFound) {
			diags.AddAttributeError(path.Root(attribute), "The playbook cannot be read", explain(err))
		}
		return ""
	}
	playbook := take("playbook", plan.Playbook)
	onboard := take("onboard_playbook", plan.OnboardPlaybook)
	return joinDigests(playbook, onboard), known
}
