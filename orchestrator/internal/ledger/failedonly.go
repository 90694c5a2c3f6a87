package ledger

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
)

// onlyFailed returns the hosts that a resume of the failed ones limits the failed
// step to, and says so as a part of a sentence; none where r asks for no limit.
// These are the hosts for which the step has not done its work: those that failed
// and those that it did not come to, say in a later batch of `serial`.
func onlyFailed(ctx context.Context, q querier, run *orchestrator.Run, r orchestrator.ResumeRun) (only []string, text string, err error) {
	if !r.FailedOnly {
		return nil, "", nil
	}
	s := run.FailedStep()
	whole := func(format string, args ...any) error {
		return orchestrator.Errorf(orchestrator.CodeRefused, format, args...).
			WithHint("resume it for all hosts, without --failed-only: %s", run.ResumeCommand())
	}
	if s.Kind == orchestrator.StepTofuApply {
		return nil, "", whole("step %d %s deals with the workspace as a whole: there are no failed hosts", s.Seq, s.Kind)
	}
	inv, _, err := standing(ctx, q, run.Workspace)
	if err != nil {
		return nil, "", err
	}
	switch {
	case inv.Digest != run.Inventory:
		return nil, "", whole("the inventory %s has changed since the step failed: its hosts are others", inv.Name())
	case run.Resource && !run.Spec.SameWork(r.Spec, false):
		// Its next apply would be told of a success that the other hosts never had.
		return nil, "", whole("the run belongs to an exocomp_provision and its playbook or settings have changed: the hosts that are well would keep the old ones")
	}
	only = s.Only // as it was limited before, if it was
	if begun(s) {
		done, err := doneHosts(ctx, q, run, s)
		if err != nil {
			return nil, "", err
		}
		limited := s.Kind == orchestrator.StepAnsiblePlay && slices.ContainsFunc(r.Spec.Args, isLimit)
		only = undone(s, inv.Hosts, done, limited)
	}
	switch {
	case len(only) > 0:
		return only, fmt.Sprintf(" for %d of %d host(s): %s", len(only), len(inv.Hosts), fewHosts(only)), nil
	case begun(s):
		return nil, "", whole("step %d %s did not fail on a host", s.Seq, s.Kind)
	default:
		return nil, "", whole("step %d %s had not begun on any host: there is none to leave out", s.Seq, s.Kind)
	}
}

// fewHosts joins the first names.
func fewHosts(names []string) string {
	const few = 5
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}

// begun reports whether a failed step came further than the host keys.
func begun(s *orchestrator.Step) bool {
	return s.Report == nil || !slices.ContainsFunc(s.Report.Hosts, func(h orchestrator.HostReport) bool {
		return h.State == orchestrator.HostPinned
	})
}

// isLimit reports whether an argument of ansible-playbook limits it to some hosts.
func isLimit(arg string) bool { return strings.HasPrefix(arg, "--limit=") }

// doneHosts returns the hosts for which a failed step has done its work, by its
// report. An onboarding has done it where it admitted the host: a play that went
// well is not yet a login that works.
func doneHosts(ctx context.Context, q querier, run *orchestrator.Run, s *orchestrator.Step) (map[string]bool, error) {
	done := map[string]bool{}
	if s.Report != nil {
		for _, h := range s.Report.Hosts {
			done[h.Name] = !h.State.Failed()
		}
	}
	if s.Kind != orchestrator.StepHostOnboard {
		return done, nil
	}
	admitted, err := collect(ctx, q, scanText[string], `
		SELECT host FROM admission
		WHERE workspace = ? AND job_id IN (SELECT id FROM job WHERE run_id = ? AND step = ?)`, run.Workspace, run.ID, s.Seq)
	for h := range done {
		done[h] = done[h] && slices.Contains(admitted, h)
	}
	return done, err
}

// undone returns the hosts, sorted, that a failed step is not done with; none
// where it failed on no host. Where limited is set, those that it did not come to
// were not asked for.
func undone(s *orchestrator.Step, hosts []string, done map[string]bool, limited bool) []string {
	if len(s.Only) > 0 {
		hosts = s.Only
	}
	if s.Report == nil || !slices.ContainsFunc(s.Report.Hosts, func(h orchestrator.HostReport) bool { return h.State.Failed() }) {
		return s.Only // as it was limited before, if it was
	}
	var out []string
	for _, h := range hosts {
		if well, met := done[h]; met && !well || !met && !limited {
			out = append(out, h)
		}
	}
	slices.Sort(out)
	return out
}
