package rpc

import (
	"github.com/exocomp/exocomp/orchestrator"
	exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"
)

func stepToWire(s orchestrator.Step) *exocompv1.Step {
	return &exocompv1.Step{
		Seq:           int64(s.Seq),
		Kind:          stepKinds.wire(s.Kind),
		State:         stepStates.wire(s.State),
		Origin:        stepOrigins.wire(s.Origin),
		Attempts:      int64(s.Attempts),
		CrashAttempts: int64(s.CrashAttempts),
		JobId:         string(s.Job),
		Failure:       failureToWire(s.Failure),
		Report:        reportToWire(s.Report),
		StartedAt:     timeToWire(s.StartedAt),
		FinishedAt:    timeToWire(s.FinishedAt),
		TakenFrom:     string(s.TakenFrom),
		Only:          s.Only,
	}
}

func stepFromWire(s *exocompv1.Step) orchestrator.Step {
	return orchestrator.Step{
		Seq:           int(s.GetSeq()),
		Kind:          stepKinds.domain(s.GetKind()),
		State:         stepStates.domain(s.GetState()),
		Origin:        stepOrigins.domain(s.GetOrigin()),
		Attempts:      int(s.GetAttempts()),
		CrashAttempts: int(s.GetCrashAttempts()),
		Job:           orchestrator.JobID(s.GetJobId()),
		Failure:       failureFromWire(s.GetFailure()),
		Report:        reportFromWire(s.GetReport()),
		StartedAt:     timeFromWire(s.GetStartedAt()),
		FinishedAt:    timeFromWire(s.GetFinishedAt()),
		TakenFrom:     orchestrator.RunID(s.GetTakenFrom()),
		Only:          s.GetOnly(),
	}
}

func reportToWire(r *orchestrator.Report) *exocompv1.Report {
	if r == nil {
		return nil
	}
	return &exocompv1.Report{
		Summary:   r.Summary,
		Task:      r.Task,
		Hosts:     convert(r.Hosts, hostReportToWire),
		LastLines: r.LastLines,
		Changes:   convert(r.Changes, changeToWire),
		Digest:    r.Digest,
	}
}

func reportFromWire(r *exocompv1.Report) *orchestrator.Report {
	if r == nil {
		return nil
	}
	return &orchestrator.Report{
		Summary:   r.GetSummary(),
		Task:      r.GetTask(),
		Hosts:     convert(r.GetHosts(), hostReportFromWire),
		LastLines: r.GetLastLines(),
		Changes:   convert(r.GetChanges(), changeFromWire),
		Digest:    r.GetDigest(),
	}
}

func hostReportToWire(h orchestrator.HostReport) *exocompv1.HostReport {
	return &exocompv1.HostReport{
		Name:    h.Name,
		Address: h.Address,
		State:   hostStates.wire(h.State),
		Message: h.Message,
		Took:    durationToWire(h.Took),
		Task:    h.Task,
		Ok:      int64(h.OK),
		Changed: int64(h.Changed),
	}
}

func hostReportFromWire(h *exocompv1.HostReport) orchestrator.HostReport {
	return orchestrator.HostReport{
		Name:    h.GetName(),
		Address: h.GetAddress(),
		State:   hostStates.domain(h.GetState()),
		Message: h.GetMessage(),
		Took:    h.GetTook().AsDuration(),
		Task:    h.GetTask(),
		OK:      int(h.GetOk()),
		Changed: int(h.GetChanged()),
	}
}

func changeToWire(c orchestrator.Change) *exocompv1.Change {
	return &exocompv1.Change{Address: c.Address, Action: c.Action}
}

func changeFromWire(c *exocompv1.Change) orchestrator.Change {
	return orchestrator.Change{Address: c.GetAddress(), Action: c.GetAction()}
}
