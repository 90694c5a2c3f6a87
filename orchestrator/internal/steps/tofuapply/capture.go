package tofuapply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/inventory"
)

// capture reads the outputs and derives the standing inventory from them. It
// changes nothing outside the outcome, so recovery simply repeats it.
func (a *attempt) capture(ctx context.Context, out orchestrator.Outcome) (orchestrator.Outcome, error) {
	err := a.captureInto(ctx, &out)
	if err == nil {
		return out, nil
	}
	out, err = a.stopped(ctx, err, out)
	if err == nil && out.Failure.Hint == "" {
		out.Failure.Hint = "correct the outputs, what was applied stays applied; then: " + a.applyAgain()
	}
	return out, err
}

func (a *attempt) captureInto(ctx context.Context, out *orchestrator.Outcome) error {
	if a.unready != nil {
		return a.unready
	}
	doc, err := a.module.Outputs(ctx)
	if err != nil {
		return err
	}
	outputs, err := inventory.ParseOutputs(doc)
	if err != nil {
		return err
	}
	inv, err := inventory.Derive(a.Job.Workspace, outputs)
	if err != nil {
		return err
	}
	content, err := inventory.Render(inv)
	if err != nil {
		return err
	}
	hosts := inventory.Effective(inv)
	warnings, err := a.grants(hosts)
	if err != nil {
		return err
	}
	out.Warnings = append(append(out.Warnings, inv.Warnings...), warnings...)
	if err := a.refuseLeaving(ctx, inv.HostNames()); err != nil {
		return err
	}
	retire, err := a.leaving(ctx, hosts)
	if err != nil {
		return err
	}
	out.Retire = retire
	out.Inventory = &orchestrator.Inventory{
		Workspace: a.Job.Workspace,
		Digest:    inventory.Digest(content),
		Content:   content,
		Path:      a.Artifacts(a.Job.Workspace),
		Hosts:     inv.HostNames(),
		Captured:  inv.Captured,
		Job:       a.Job.ID,
		UpdatedAt: time.Now(),
	}
	out.Report.Digest = out.Inventory.Digest
	captured := fmt.Sprintf("captured %d output(s) to inventory %s naming %d host(s)", inv.Captured, out.Inventory.Path, inv.HostCount())
	if out.Report.Summary != "" {
		captured = out.Report.Summary + "; " + captured
	}
	out.Report.Summary = captured
	a.Logf("%s", captured)
	return nil
}

// grants checks that a person granted every key file that the inventory names.
// A chain is refused; a plain apply only warns, because the job that will use
// the inventory brings its own grants.
func (a *attempt) grants(hosts []inventory.Host) ([]string, error) {
	if a.chain == nil {
		return inventory.Ungranted(hosts, nil), nil
	}
	var m orchestrator.Mistakes
	for _, text := range inventory.Ungranted(hosts, a.chain.SSHIdentities) {
		m.Addf("%s", text)
	}
	if err := m.Err(); err != nil {
		return nil, orchestrator.Errorf(orchestrator.CodeRefused, "%w", err)
	}
	return nil, nil
}

// refuseLeaving refuses to let hosts leave the inventory, and with them their
// pins, for a change that nobody asked to be applied: a checkout that is half
// done lacks outputs, and a host that comes back is trusted on first use.
func (a *attempt) refuseLeaving(ctx context.Context, names []string) error {
	if !a.Job.Spec.Watched {
		return nil
	}
	standing, err := a.Ledger.Inventory(ctx, a.Job.Workspace)
	if errors.Is(err, orchestrator.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	leave := slices.DeleteFunc(slices.Clone(standing.Hosts), func(h string) bool { return slices.Contains(names, h) })
	if len(leave) == 0 {
		return nil
	}
	return orchestrator.Errorf(orchestrator.CodeRefused, "by the changed configuration %d host(s) would leave %s, which is not done unasked: %s",
		len(leave), standing.Name(), strings.Join(leave, ", ")).
		WithHint("if it is right: exocomp workspace refresh %s", a.Job.Workspace)
}

// leaving returns the pins that hosts of the captured inventory refer to no
// more, each with the references that end.
func (a *attempt) leaving(ctx context.Context, hosts []inventory.Host) ([]orchestrator.Pin, error) {
	if _, err := a.Ledger.Inventory(ctx, a.Job.Workspace); errors.Is(err, orchestrator.ErrNotFound) {
		return nil, nil // the first capture
	} else if err != nil {
		return nil, err
	}
	pins, err := a.Ledger.Pins(ctx, orchestrator.PinFilter{Workspace: a.Job.Workspace})
	if err != nil {
		return nil, err
	}
	return orchestrator.LeavingPins(pins, a.Job.Workspace, inventory.Places(hosts)), nil
}
