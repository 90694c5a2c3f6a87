package supervised

import (
	"context"
	"fmt"
	"slices"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/hostkeys"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/inventory"
)

// Pin records the keys of an attempt's hosts, none of which is local, or holds
// them against their pins, before anything is sent to them. r says how; whose
// hosts they are it learns here. A key that is not the expected one, and a host
// that does not answer, fail the outcome; the error is the handler's to return.
func Pin(ctx context.Context, a *jobs.Attempt, p *hostkeys.Pinner, hosts []inventory.Host, r hostkeys.Request) (orchestrator.Outcome, error) {
	r.Run, r.Step, r.Job, r.By = a.Job.Run, a.Job.StepKind, a.Job.ID, a.Job.SubmittedBy
	for _, x := range hosts {
		r.Hosts = append(r.Hosts, hostkeys.HostWant{
			Workspace: a.Job.Workspace, Name: x.Name, Host: x.Address, Port: x.Port,
			StatedKeys: x.HostKeys, InstanceID: x.InstanceID,
		})
	}
	reports, err := p.Pin(ctx, r)
	if cause := context.Cause(ctx); cause != nil {
		return orchestrator.Outcome{}, cause
	}
	for _, h := range reports {
		if h.State == orchestrator.HostPinned {
			a.Logf("host key of %s at %s pinned: %s", h.Name, h.Address, h.Message)
		} else {
			a.Logf("%s", h.Message)
		}
	}
	if err != nil {
		return orchestrator.Fail(err, &orchestrator.Report{Hosts: reports}), nil
	}
	a.Progress(ctx, fmt.Sprintf("%d host key(s) pinned or verified", len(reports)), "")
	return orchestrator.Outcome{}, nil
}

// Only returns which hosts, by their names, a job's step deals with: those that a
// resume of the failed ones left, else all. chain is nil for a standalone job.
func Only(chain *orchestrator.Run, j orchestrator.Job) func(host string) bool {
	var only []string
	if chain != nil {
		if s := chain.Step(j.StepKind); s != nil {
			only = s.Only
		}
	}
	return func(host string) bool { return len(only) == 0 || slices.Contains(only, host) }
}
