package tofu

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/child"
	tfjson "github.com/hashicorp/terraform-json"
)

// Plan is what a saved plan will do, without any value.
type Plan struct {
	Changes []orchestrator.Change // what happens to managed resources, in plan order; several to one that is imported or moved
	Creates []PlannedCreate       // of those, the ones that make something
	Outputs bool                  // an output changes
}

// PlannedCreate is a create, or the create half of a replacement. It is
// recorded before the apply starts, so that a crash can be told from success.
type PlannedCreate struct {
	Address string `json:"address"`
	PriorID string `json:"prior_id,omitempty"` // of the object that a replacement replaces
}

// Empty reports whether applying the plan would change nothing, neither
// anything that exists nor what the state says of it.
func (p Plan) Empty() bool { return len(p.Changes) == 0 && !p.Outputs }

// Destructive lists the changes that delete or replace.
func (p Plan) Destructive() []orchestrator.Change {
	var out []orchestrator.Change
	for _, c := range p.Changes {
		if c.Action == actionDelete || c.Action == actionReplace {
			out = append(out, c)
		}
	}
	return out
}

// Actions as a [orchestrator.Change] names them.
const (
	actionCreate  = "create"
	actionUpdate  = "update"
	actionDelete  = "delete"
	actionReplace = "replace"
	actionForget  = "forget"
	actionImport  = "import" // of an import block
	actionMove    = "move"   // of a moved block
)

// ShowPlan reads a saved plan with a child of this process: `tofu show -json`
// prints sensitive values in clear.
func (m Module) ShowPlan(ctx context.Context, planFile string) (Plan, error) {
	out, err := m.child(ctx, nil, "show", "-no-color", "-json", planFile)
	if err != nil {
		return Plan{}, fmt.Errorf("read plan: %w", err)
	}
	return parsePlan(out)
}

func parsePlan(doc []byte) (Plan, error) {
	var raw tfjson.Plan
	if err := json.Unmarshal(doc, &raw); err != nil {
		return Plan{}, fmt.Errorf("read plan: %w", err)
	}
	var p Plan
	for _, rc := range raw.ResourceChanges {
		if rc.Mode != tfjson.ManagedResourceMode || rc.Change == nil {
			continue
		}
		action := actionOf(rc.Change.Actions)
		if rc.Change.Importing != nil {
			p.Changes = append(p.Changes, orchestrator.Change{Address: rc.Address, Action: actionImport})
		}
		if rc.PreviousAddress != "" && rc.PreviousAddress != rc.Address {
			p.Changes = append(p.Changes, orchestrator.Change{Address: rc.Address, Action: actionMove})
		}
		if action != "" {
			p.Changes = append(p.Changes, orchestrator.Change{Address: rc.Address, Action: action})
		}
		if action == actionCreate || action == actionReplace {
			p.Creates = append(p.Creates, PlannedCreate{Address: rc.Address, PriorID: idOf(rc.Change.Before)})
		}
	}
	for _, oc := range raw.OutputChanges {
		if !oc.Actions.NoOp() {
			p.Outputs = true
		}
	}
	return p, nil
}

// actionOf names a set of actions, empty where nothing changes.
func actionOf(a tfjson.Actions) string {
	switch {
	case a.Replace():
		return actionReplace
	case a.Create():
		return actionCreate
	case a.Update():
		return actionUpdate
	case a.Delete():
		return actionDelete
	case slices.Contains(a, tfjson.ActionForget):
		return actionForget
	default:
		return ""
	}
}

// idOf returns the `id` attribute of a resource's values, where it has one.
func idOf(values any) string {
	attributes, ok := values.(map[string]any)
	if !ok {
		return ""
	}
	id, _ := attributes["id"].(string)
	return id
}

// child runs `tofu args…` in the module's directory over pipes.
func (m Module) child(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	c := m.command(args...)
	return ask(ctx, child.Spec{Argv: c.Argv, Env: c.Env, Dir: c.Dir, Stdin: stdin})
}
