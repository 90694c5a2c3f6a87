package provider

import (
	"context"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/exocomp/exocomp/orchestrator"
)

// textRule holds a string to a rule that returns what is wrong with it.
type textRule struct {
	what  string // what the rule asks for, for the documentation
	check func(string) error
}

func (r textRule) Description(context.Context) string         { return r.what }
func (r textRule) MarkdownDescription(context.Context) string { return r.what }

// ValidateString implements [validator.String].
func (r textRule) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if err := r.check(req.ConfigValue.ValueString()); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid value", explain(err))
	}
}

var (
	workspaceRule = textRule{"a name of a workspace", orchestrator.ValidateWorkspaceName}
	envNameRule   = textRule{"a name of an environment variable", orchestrator.ValidateEnvName}
	waitRule      = textRule{"a duration above 0s and at most 24h", func(s string) error {
		d, err := time.ParseDuration(s)
		if err != nil || d <= 0 || d > 24*time.Hour {
			return orchestrator.Errorf(orchestrator.CodeInvalid, "%q is no duration above 0s and at most 24h", s).
				WithHint(`write, for example: "90s" or "10m"`)
		}
		return nil
	}}
	// pathRule refuses what a shell would have expanded, since OpenTofu does not.
	pathRule = textRule{"the path of a file", func(s string) error {
		switch {
		case s == "":
			return orchestrator.Errorf(orchestrator.CodeInvalid, "the path is empty").WithHint("leave the attribute out, or name a file")
		case s == "~" || strings.HasPrefix(s, "~/"):
			return orchestrator.Errorf(orchestrator.CodeInvalid, "%s: ~ is not expanded", s).WithHint("write: pathexpand(%q)", s)
		}
		return nil
	}}
	// daemonPathRule is for paths on the daemon's host, which has Linux.
	daemonPathRule = textRule{"an absolute path on the daemon's host", func(s string) error {
		if !strings.HasPrefix(s, "/") {
			return orchestrator.Errorf(orchestrator.CodeInvalid, "%q is no absolute path", s).
				WithHint("give the path as it is on the daemon's host")
		}
		return nil
	}}
)

// sameDuration keeps what stands in the state while the configuration says as
// long in other words: "300s" for "5m".
type sameDuration struct{}

func (sameDuration) Description(context.Context) string {
	return "A duration that is as long as before is no change."
}

func (d sameDuration) MarkdownDescription(ctx context.Context) string { return d.Description(ctx) }

// PlanModifyString implements [planmodifier.String].
func (sameDuration) PlanModifyString(_ context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if req.StateValue.IsNull() || req.PlanValue.IsNull() || req.PlanValue.IsUnknown() {
		return
	}
	before, err := time.ParseDuration(req.StateValue.ValueString())
	if err != nil {
		return
	}
	if after, err := time.ParseDuration(req.PlanValue.ValueString()); err == nil && before == after {
		resp.PlanValue = req.StateValue
	}
}
