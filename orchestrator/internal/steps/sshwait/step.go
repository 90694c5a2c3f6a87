package sshwait

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/ansible/supervised"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/inventory"
)

// Ledger is what the step reads of the ledger.
type Ledger interface {
	Run(ctx context.Context, id orchestrator.RunID) (orchestrator.Run, error)
	Inventory(ctx context.Context, workspace string) (orchestrator.Inventory, error)
}

// Handler waits for the hosts of a chain.
type Handler struct{ Ledger Ledger }

// Handle implements [jobs.Handler]. It has no phase: it only looks, so a crash
// re-arms it and it looks again.
func (h *Handler) Handle(ctx context.Context, a *jobs.Attempt) (orchestrator.Outcome, error) {
	run, err := h.Ledger.Run(ctx, a.Job.Run)
	if err != nil {
		return orchestrator.Outcome{}, err
	}
	row, err := h.Ledger.Inventory(ctx, a.Job.Workspace)
	if err != nil {
		return orchestrator.Outcome{}, err
	}
	inv, err := supervised.Current(row, &run)
	if err != nil {
		return orchestrator.Outcome{}, err
	}
	only := supervised.Only(&run, a.Job)
	hosts := slices.DeleteFunc(inventory.Effective(inv), func(x inventory.Host) bool { return !only(x.Name) })
	return Hosts(ctx, a, hosts, run.Spec.SSHWait, hint(&run))
}

// hint says what to do about the silent hosts of a chain.
func hint(run *orchestrator.Run) string {
	longer := min(2*run.Spec.SSHWait, 24*time.Hour)
	return fmt.Sprintf("look at the machine's console or firewall; if it only needs longer: %s; if the address is wrong, correct the configuration, then: %s",
		run.ResumeCommand("--ssh-wait", short(longer)), run.ReapplyCommand())
}

// Hosts waits for the hosts of an attempt, from its start and no longer than
// bound. A silent host fails the outcome, which has a line for every host; hint
// says what to do about one. The error is the handler's to return.
func Hosts(ctx context.Context, a *jobs.Attempt, hosts []inventory.Host, bound time.Duration, hint string) (orchestrator.Outcome, error) {
	var targets []Target
	var local []orchestrator.HostReport
	for _, x := range hosts {
		if x.Local() {
			local = append(local, orchestrator.HostReport{Name: x.Name, State: orchestrator.HostSkipped, Message: "local: nothing to wait for"})
			continue
		}
		targets = append(targets, Target{Name: x.Name, Host: x.Address, Port: x.Port})
	}
	results := Wait(ctx, targets, Options{
		Deadline: a.Job.StartedAt.Add(bound),
		OnResult: func(r HostResult) { tell(ctx, a, r, len(targets)) },
	})
	if cause := context.Cause(ctx); cause != nil {
		return orchestrator.Outcome{}, cause
	}
	return outcome(results, local, bound, hint), nil
}

// manyHosts is where a line a host in the log stays and an event a host ends.
const manyHosts = 50

func tell(ctx context.Context, a *jobs.Attempt, r HostResult, of int) {
	text := fmt.Sprintf("%s at %s is ready after %s", r.Name, r.Address, r.Took.Round(time.Millisecond))
	if !r.Ready {
		text = fmt.Sprintf("%s at %s is not ready: %v", r.Name, r.Address, r.Err)
	}
	a.Logf("%s", text)
	if of <= manyHosts && ctx.Err() == nil {
		a.Progress(ctx, text, r.Name)
	}
}

// outcome fails the step if any host is silent, and names each.
func outcome(results []HostResult, local []orchestrator.HostReport, bound time.Duration, hint string) orchestrator.Outcome {
	report := &orchestrator.Report{Hosts: local}
	var silent []string
	for _, r := range results {
		h := orchestrator.HostReport{Name: r.Name, Address: r.Address, State: orchestrator.HostReady, Took: r.Took}
		if !r.Ready {
			h.State = orchestrator.HostWaiting
			if r.Err != nil {
				h.Message = r.Err.Error()
			}
			silent = append(silent, strings.TrimSuffix(fmt.Sprintf("%s at %s: %s", r.Name, r.Address, h.Message), ": "))
		}
		report.Hosts = append(report.Hosts, h)
	}
	slices.SortFunc(report.Hosts, func(a, b orchestrator.HostReport) int { return strings.Compare(a.Name, b.Name) })
	report.Summary = fmt.Sprintf("%d host(s) ready", len(results)-len(silent))
	if len(silent) == 0 {
		return orchestrator.Outcome{Report: report}
	}
	apart := ""
	if len(local) > 0 {
		apart = fmt.Sprintf(" (%d local one(s) apart)", len(local))
	}
	return orchestrator.Outcome{Report: report, Failure: &orchestrator.Failure{
		Code: orchestrator.CodeFailed,
		Message: fmt.Sprintf("SSH did not answer within %s on %d of %d host(s)%s: %s",
			short(bound), len(silent), len(results), apart, few(silent)),
		Hint: hint,
	}}
}

// short prints a duration as a person types it: 5m, not 5m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// few joins the first entries of a list.
func few(list []string) string {
	const most = 5
	if len(list) <= most {
		return strings.Join(list, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(list[:most], "; "), len(list)-most)
}
