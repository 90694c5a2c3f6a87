package tofuapply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/internal/tofu"
)

// apply goes from the suspicion check to the end of `tofu apply`.
func (a *attempt) apply(ctx context.Context) (orchestrator.Outcome, error) {
	var out orchestrator.Outcome
	plan, planned, err := a.recordedPlan()
	if err != nil {
		return orchestrator.Fail(err, nil), nil
	}
	if !planned {
		found, failure := a.clearSuspicion(ctx)
		if failure != nil {
			return orchestrator.Outcome{Failure: failure}, nil
		}
		out.Found = found
		var err error
		var failed *orchestrator.Failure
		plan, failed, err = a.plan(ctx)
		if err != nil {
			return out, err
		}
		out.Report = &orchestrator.Report{Changes: plan.Changes}
		if failed == nil {
			failed = a.gate(plan)
		}
		if failed != nil {
			out.Failure = failed
			return out, nil
		}
		if err := a.recordPlan(plan); err != nil {
			return orchestrator.Fail(err, out.Report), nil
		}
	}
	out.Report = &orchestrator.Report{Changes: plan.Changes, Summary: summary(plan)}
	if plan.Empty() {
		return out, nil
	}
	res, err := a.exec(ctx, phaseApply, a.module.Apply(a.planFile()))
	var cut *jobs.LostError
	switch {
	case errors.As(err, &cut):
		lost, failure := a.missing(ctx, plan, cut.StdoutPath, cut.SameBoot)
		if failure == nil && len(lost) == 0 {
			return out, err // nothing is missing: a new attempt plans again
		}
		out.Failure, out.Lost = failure, lost
		return out, nil
	case err != nil:
		return out, err
	}
	out.Failure = ended(res, "tofu apply")
	if out.Failure == nil {
		return out, nil
	}
	lost, failure := a.missing(ctx, plan, res.StdoutPath, true)
	if len(lost) > 0 {
		out.Failure, out.Lost = failure, lost
	}
	return out, nil
}

// plan makes the saved plan and reads it.
func (a *attempt) plan(ctx context.Context) (tofu.Plan, *orchestrator.Failure, error) {
	if !a.Began(phasePlan) {
		if f, err := a.initWhenNeeded(ctx); f != nil || err != nil {
			return tofu.Plan{}, f, err
		}
	}
	res, err := a.exec(ctx, phasePlan, a.module.Plan(a.planFile()))
	if err != nil {
		return tofu.Plan{}, nil, err
	}
	if res.ExitCode != 0 && !res.Cancelled {
		if j, err := journal(res.StdoutPath); err == nil && j.NeedsInit() {
			if f, err := a.init(ctx); f != nil || err != nil {
				return tofu.Plan{}, f, err
			}
			if res, err = a.exec(ctx, phaseReplan, a.module.Plan(a.planFile())); err != nil {
				return tofu.Plan{}, nil, err
			}
		}
	}
	if f := a.explain(ended(res, "tofu plan")); f != nil {
		return tofu.Plan{}, f, nil
	}
	plan, err := a.module.ShowPlan(ctx, a.planFile())
	if err != nil {
		return tofu.Plan{}, orchestrator.FailureOf(err), nil
	}
	return plan, nil, nil
}

// gate refuses what a person would have to approve.
func (a *attempt) gate(plan tofu.Plan) *orchestrator.Failure {
	var park []orchestrator.Change
	switch a.module.Workspace.Approval {
	case orchestrator.ApprovalNever:
	case orchestrator.ApprovalAlways:
		park = plan.Changes
	default:
		park = plan.Destructive()
	}
	if len(park) == 0 {
		return nil
	}
	names := make([]string, 0, len(park))
	for _, c := range park {
		names = append(names, c.Action+" "+c.Address)
	}
	return &orchestrator.Failure{
		Code: orchestrator.CodeRefused,
		Message: fmt.Sprintf("the plan needs a person's approval (policy %s) and approvals are not available yet: %s",
			a.module.Workspace.Approval, strings.Join(names, ", ")),
		Hint: "apply it yourself with tofu, or let the workspace apply such plans: exocomp workspace add " +
			a.Job.Workspace + " " + a.module.Workspace.Dir + " --approval never",
	}
}

// explain adds the next step to a plan or apply that failed for a reason with a
// known remedy.
func (a *attempt) explain(f *orchestrator.Failure) *orchestrator.Failure {
	if f == nil || f.Hint != "" {
		return f
	}
	f.Hint = "exocomp jobs logs " + string(a.Job.ID)
	return f
}

// ended returns nil for a tool that did its work, and otherwise why not.
func ended(res jobs.Result, what string) *orchestrator.Failure {
	if res.ExitCode == 0 && res.Signal == "" {
		return nil
	}
	f := &orchestrator.Failure{Code: orchestrator.CodeFailed}
	j, err := journal(res.StdoutPath)
	switch said := j.Err(); {
	case res.Cancelled:
		f.Code = orchestrator.CodeCancelled
		f.Message = what + " was cancelled; it ended in order and saved its state"
		if res.Signal != "" {
			f.Message = what + " was cancelled by force (" + res.Signal + "): its state may be incomplete"
		}
	case res.Signal != "":
		f.Message = fmt.Sprintf("%s was killed (%s)", what, res.Signal)
	case err == nil && said != "":
		f.Message = fmt.Sprintf("%s: %s", what, said)
	default:
		f.Message = fmt.Sprintf("%s ended with exit code %d", what, res.ExitCode)
	}
	return f
}

func summary(plan tofu.Plan) string {
	if plan.Empty() {
		return "no changes"
	}
	count := map[string]int{}
	var order []string
	for _, c := range plan.Changes {
		if count[c.Action] == 0 {
			order = append(order, c.Action)
		}
		count[c.Action]++
	}
	parts := make([]string, 0, len(order))
	for _, action := range order {
		parts = append(parts, fmt.Sprintf("%d %s", count[action], action))
	}
	if len(parts) == 0 {
		return "outputs only"
	}
	return strings.Join(parts, ", ")
}

// planRecord is the note of what an apply is about to do, without values.
const planRecord = "plan.json"

// recordPlan makes the plan's addresses durable before the apply starts.
func (a *attempt) recordPlan(plan tofu.Plan) error {
	doc, err := json.Marshal(plan)
	if err != nil {
		return fmt.Errorf("record plan: %w", err)
	}
	return durable.WriteFile(filepath.Join(a.ControlDir, planRecord), doc, durable.PrivateFile)
}

// recordedPlan returns the note of an attempt that got that far before the
// daemon restarted.
func (a *attempt) recordedPlan() (tofu.Plan, bool, error) {
	var plan tofu.Plan
	doc, err := os.ReadFile(filepath.Join(a.ControlDir, planRecord))
	if errors.Is(err, os.ErrNotExist) {
		return plan, false, nil
	}
	if err != nil {
		return plan, false, fmt.Errorf("read recorded plan: %w", err)
	}
	if err := json.Unmarshal(doc, &plan); err != nil {
		return plan, false, fmt.Errorf("read recorded plan: %w", err)
	}
	return plan, true, nil
}
