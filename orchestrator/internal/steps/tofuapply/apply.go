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

// apply goes from the plan to the end of `tofu apply`. That no create may be
// lost is the ledger's word: it lets no apply begin while one is.
func (a *attempt) apply(ctx context.Context) (orchestrator.Outcome, error) {
	var out orchestrator.Outcome
	plan, recorded, err := a.recordedPlan()
	if err == nil && !recorded {
		plan, err = a.decide(ctx, &out)
	}
	if err != nil {
		return a.stopped(ctx, err, out)
	}
	out.Report = &orchestrator.Report{Changes: plan.Changes, Summary: summary(plan)}
	if plan.Empty() {
		return out, nil
	}
	if a.planGone() && !a.Began(phaseApply) {
		return out, jobs.ErrLost
	}
	return a.execute(ctx, plan, out)
}

// decide makes a plan that may be applied and notes durably what it will do.
func (a *attempt) decide(ctx context.Context, out *orchestrator.Outcome) (tofu.Plan, error) {
	plan, err := a.plan(ctx)
	if err != nil {
		return plan, err
	}
	out.Report = &orchestrator.Report{Changes: plan.Changes}
	if err := a.gate(plan); err != nil {
		return plan, err
	}
	return plan, a.recordPlan(plan)
}

// execute applies exactly the saved plan. However it ended, what it started to
// create is compared with the state: only a clean end is believed unseen.
func (a *attempt) execute(ctx context.Context, plan tofu.Plan, out orchestrator.Outcome) (orchestrator.Outcome, error) {
	res, err := a.exec(ctx, phaseApply, a.module.Apply(a.planFile()))
	journalPath, sameBoot := res.StdoutPath, true
	var cut *jobs.LostError
	switch {
	case errors.As(err, &cut):
		journalPath, sameBoot = cut.StdoutPath, cut.SameBoot
	case err != nil:
		return out, err
	default:
		if out.Failure = a.ended(res, "tofu apply"); out.Failure == nil {
			return out, nil
		}
	}
	lost, stopped := a.missing(ctx, plan, journalPath, sameBoot)
	if stopped != nil {
		return orchestrator.Outcome{}, stopped
	}
	if cut != nil && len(lost) == 0 {
		return out, err // nothing is missing: a new attempt plans again
	}
	out.Lost = lost
	if len(out.Lost) > 0 {
		code := orchestrator.CodeFailed
		if out.Failure != nil && out.Failure.Code == orchestrator.CodeCancelled {
			code = out.Failure.Code // what a person's force left behind
		}
		out.Failure = a.lostFailure(code, out.Lost)
	}
	return out, nil
}

// stopped tells an error of this step's own work from the end of its context:
// the pool knows what a cancellation or a shutdown means.
func (a *attempt) stopped(ctx context.Context, err error, out orchestrator.Outcome) (orchestrator.Outcome, error) {
	var phase *phaseError
	switch {
	case errors.As(err, &phase):
		return out, phase.err
	case context.Cause(ctx) != nil:
		return out, context.Cause(ctx)
	}
	out.Failure = orchestrator.FailureOf(err)
	return out, nil
}

// phaseError carries an error of [jobs.Attempt.Exec], which the handler returns
// as it is.
type phaseError struct{ err error }

func (e *phaseError) Error() string { return e.err.Error() }

// plan makes the saved plan and reads it.
func (a *attempt) plan(ctx context.Context) (tofu.Plan, error) {
	if !a.Began(phasePlan) {
		if err := a.initWhenNeeded(ctx); err != nil {
			return tofu.Plan{}, err
		}
		a.ensureState(ctx)
	}
	res, err := a.exec(ctx, phasePlan, a.module.Plan(a.planFile()))
	if err != nil {
		return tofu.Plan{}, &phaseError{err}
	}
	if res.ExitCode != 0 && !res.Cancelled {
		if j, err := journal(res.StdoutPath); err == nil && j.NeedsInit() {
			if err := a.init(ctx); err != nil {
				return tofu.Plan{}, err
			}
			a.ensureState(ctx)
			if res, err = a.exec(ctx, phaseReplan, a.module.Plan(a.planFile())); err != nil {
				return tofu.Plan{}, &phaseError{err}
			}
		}
	}
	if f := a.ended(res, "tofu plan"); f != nil {
		return tofu.Plan{}, f.Err()
	}
	if a.planGone() {
		return tofu.Plan{}, &phaseError{jobs.ErrLost}
	}
	return a.module.ShowPlan(ctx, a.planFile())
}

// planGone reports whether the saved plan of a finished phase is not there: it
// lies in the runtime directory, which a restart of the machine empties.
func (a *attempt) planGone() bool {
	_, err := os.Stat(a.planFile())
	return errors.Is(err, os.ErrNotExist)
}

// gate refuses what a person would have to approve.
func (a *attempt) gate(plan tofu.Plan) error {
	var park []orchestrator.Change
	switch a.module.Workspace.Approval {
	case orchestrator.ApprovalNever:
		if a.Job.Spec.Watched {
			return a.refuseUnasked(plan.Destructive())
		}
	case orchestrator.ApprovalAlways:
		park = plan.Changes
	default:
		park = plan.Destructive()
	}
	if len(park) == 0 {
		return nil
	}
	return &orchestrator.Error{
		Code: orchestrator.CodeRefused,
		Message: fmt.Sprintf("the plan needs a person's approval (policy %s) and approvals are not available yet: %s",
			a.module.Workspace.Approval, named(park)),
		Hint: "apply it yourself with tofu, or let the workspace apply such plans: " +
			orchestrator.ShellCommand("exocomp", "workspace", "add", a.Job.Workspace, a.module.Workspace.Dir, "--approval", "never") +
			"; then: " + a.again(false),
	}
}

// refuseUnasked refuses to destroy what no person has asked to be destroyed: a
// file that was saved is no such wish.
func (a *attempt) refuseUnasked(destructive []orchestrator.Change) error {
	if len(destructive) == 0 {
		return nil
	}
	return orchestrator.Errorf(orchestrator.CodeRefused,
		"the configuration changed, and its plan would destroy something, which is not done unasked: %s", named(destructive)).
		WithHint("if it is right: exocomp workspace apply %s", a.Job.Workspace)
}

func named(changes []orchestrator.Change) string {
	names := make([]string, 0, len(changes))
	for _, c := range changes {
		names = append(names, c.Action+" "+c.Address)
	}
	return strings.Join(names, ", ")
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
// daemon restarted. An apply that was announced to the ledger and left no note
// is an error: nothing tells any more what it may have made.
func (a *attempt) recordedPlan() (tofu.Plan, bool, error) {
	var plan tofu.Plan
	doc, err := os.ReadFile(filepath.Join(a.ControlDir, planRecord))
	if errors.Is(err, os.ErrNotExist) && a.Job.Phase == phaseApply {
		return plan, false, orchestrator.Errorf(orchestrator.CodeFailed,
			"an apply of workspace %s was cut short and the record of what it began is gone from %s: it may have made what the state lacks",
			a.Job.Workspace, a.ControlDir).
			WithHint("compare what stands with %s, import what is missing, then: %s",
				a.module.Workspace.TofuCommand("state", "list"), a.again(false))
	}
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
