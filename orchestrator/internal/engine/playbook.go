package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/internal/steps/onboard"
	"github.com/exocomp/exocomp/orchestrator/internal/steps/play"
	"github.com/exocomp/exocomp/orchestrator/inventory"
)

// Onboarder is the handler of step 3, as a playbook run needs it.
type Onboarder interface {
	// Pin holds the hosts' keys against their pins, or records them.
	Pin(ctx context.Context, a *jobs.Attempt, hosts []inventory.Host, again, corrected string) (orchestrator.Outcome, error)
	// Admit onboards pinned hosts.
	Admit(ctx context.Context, a *jobs.Attempt, r onboard.Admission) (orchestrator.Outcome, error)
}

// Player is the handler of step 4, as a playbook run needs it.
type Player interface {
	Play(ctx context.Context, a *jobs.Attempt, ad play.Admitted) (orchestrator.Outcome, error)
}

// playbookRun is the handler of a [orchestrator.JobPlaybookRun]: it admits the
// hosts that are not admitted yet, then plays.
//
// Running it again is safe as far as the play is: what it has decided about the
// hosts is kept with the attempt, and onboarding changes nothing on a host that
// is onboarded. A new attempt decides anew.
func (e *Engine) playbookRun(ctx context.Context, a *jobs.Attempt) (orchestrator.Outcome, error) {
	ad, out, err := e.admission(ctx, a)
	if err != nil || !out.Succeeded() {
		return ad.Left.join(out), err
	}
	admitted, err := e.admit(ctx, a, &ad)
	if err != nil || !admitted.Succeeded() {
		return ad.Left.join(admitted), err
	}
	if nobody, err := e.nobodyIsLeft(ctx, a.Job, ad); err != nil || nobody {
		return orchestrator.Outcome{
			Failure: ad.Left.failure(), Report: &orchestrator.Report{Hosts: ad.Left.Hosts}, Warnings: slices.Concat(ad.Warnings, admitted.Warnings),
		}, err
	}
	played, err := e.cfg.Handlers.Play.Play(ctx, a, play.Admitted{
		Now: admitted.Admit, Without: ad.Left.names(), Identities: ad.Identities, Again: a.Job.AgainCommand(),
	})
	if err != nil && (ctx.Err() != nil || errors.Is(err, jobs.ErrLost)) {
		return played, err
	}
	if err != nil {
		played = orchestrator.Fail(err, nil) // what came before it stands all the same
	}
	return together(ad, admitted, played), nil
}

// admit onboards the hosts that the attempt has decided on, and adds to those
// that are left out the ones where that failed.
func (e *Engine) admit(ctx context.Context, a *jobs.Attempt, ad *admission) (orchestrator.Outcome, error) {
	if len(ad.Onboard) == 0 {
		return orchestrator.Outcome{}, nil
	}
	settings, err := e.Settings(ctx, a.Job.Workspace)
	if err != nil {
		return orchestrator.Outcome{}, err
	}
	row, err := e.Inventory(ctx, a.Job.Workspace)
	if err != nil {
		return orchestrator.Outcome{}, err
	}
	inv, err := inventory.Parse(row.Workspace, row.Content)
	if err != nil {
		return orchestrator.Outcome{}, err
	}
	out, err := e.cfg.Handlers.Onboard.Admit(ctx, a, onboard.Admission{
		Inventory: inv,
		Hosts: slices.DeleteFunc(inventory.Effective(inv), func(h inventory.Host) bool {
			return !slices.Contains(ad.Onboard, h.Name)
		}),
		Playbook:   settings.Spec.OnboardPlaybook,
		Identities: slices.Concat(a.Job.Spec.Play.SSHIdentities, ad.Identities),
		KeepGoing:  a.Job.Spec.KeepGoing,
		Again:      a.Job.AgainCommand(),
	})
	if err != nil || out.Succeeded() || !a.Job.Spec.KeepGoing || out.Failure.Code == orchestrator.CodeCancelled {
		return out, err
	}
	well := map[string]bool{}
	for _, x := range out.Admit {
		well[x.Host] = true
	}
	if ad.Left.add(out, ad.Onboard, well) {
		out.Failure = nil
	}
	return out, nil
}

// nobodyIsLeft reports whether every host of the inventory was left out.
func (e *Engine) nobodyIsLeft(ctx context.Context, j orchestrator.Job, ad admission) (bool, error) {
	if len(ad.Left.Hosts) == 0 {
		return false, nil
	}
	row, err := e.Inventory(ctx, j.Workspace)
	left := ad.Left.names()
	return !slices.ContainsFunc(row.Hosts, func(h string) bool { return !slices.Contains(left, h) }), err
}

// together is the outcome of a playbook run: of its play, with what came before.
// A host that was left out fails it, and has its line.
func together(ad admission, admitted, played orchestrator.Outcome) orchestrator.Outcome {
	out := played
	out.Admit = admitted.Admit
	out.Warnings = slices.Concat(ad.Warnings, admitted.Warnings, played.Warnings)
	if n := len(admitted.Admit); n > 0 && out.Report != nil {
		out.Report.Summary += fmt.Sprintf("; %d admitted before it", n)
	}
	return ad.Left.join(out)
}

// join adds to the outcome of what was done without the hosts that they are left
// out, and why.
func (l *leftOut) join(out orchestrator.Outcome) orchestrator.Outcome {
	left := l.failure()
	if left == nil {
		return out
	}
	if out.Report == nil {
		out.Report = &orchestrator.Report{}
	}
	out.Report.Hosts = slices.SortedFunc(slices.Values(slices.Concat(out.Report.Hosts, l.Hosts)),
		func(a, b orchestrator.HostReport) int { return strings.Compare(a.Name, b.Name) })
	out.Report.Summary = strings.TrimPrefix(fmt.Sprintf("%s; %d not admitted", out.Report.Summary, len(l.Hosts)), "; ")
	switch {
	case out.Failure == nil:
		left.Code = orchestrator.CodeFailed // refused is what nothing was done of
		left.Message = "the play did its work on the others; " + left.Message
		out.Failure = left
	case out.Failure.Code != orchestrator.CodeCancelled:
		both := *out.Failure
		both.Message += "; " + left.Message
		out.Failure = &both
	}
	return out
}
