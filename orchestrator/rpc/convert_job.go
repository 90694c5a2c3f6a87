package rpc

import (
	"github.com/exocomp/exocomp/orchestrator"
	exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"
)

func jobToWire(j orchestrator.Job) *exocompv1.Job {
	return &exocompv1.Job{
		Id:              string(j.ID),
		Kind:            jobKinds.wire(j.Kind),
		State:           jobStates.wire(j.State),
		Workspace:       j.Workspace,
		RunId:           string(j.Run),
		Step:            int64(j.Step),
		StepKind:        stepKinds.wire(j.StepKind),
		Spec:            jobSpecToWire(j.Spec),
		Attempt:         attemptToWire(j.Attempt),
		Phase:           j.Phase,
		CancelRequested: j.CancelRequested,
		CancelForce:     j.CancelForce,
		Failure:         failureToWire(j.Failure),
		Report:          reportToWire(j.Report),
		Redrives:        string(j.Redrives),
		RedrivenBy:      string(j.RedrivenBy),
		SubmittedBy:     peerToWire(j.SubmittedBy),
		CreatedAt:       timeToWire(j.CreatedAt),
		StartedAt:       timeToWire(j.StartedAt),
		FinishedAt:      timeToWire(j.FinishedAt),
	}
}

func jobFromWire(j *exocompv1.Job) orchestrator.Job {
	return orchestrator.Job{
		ID:              orchestrator.JobID(j.GetId()),
		Kind:            jobKinds.domain(j.GetKind()),
		State:           jobStates.domain(j.GetState()),
		Workspace:       j.GetWorkspace(),
		Run:             orchestrator.RunID(j.GetRunId()),
		Step:            int(j.GetStep()),
		StepKind:        stepKinds.domain(j.GetStepKind()),
		Spec:            jobSpecFromWire(j.GetSpec()),
		Attempt:         attemptFromWire(j.GetAttempt()),
		Phase:           j.GetPhase(),
		CancelRequested: j.GetCancelRequested(),
		CancelForce:     j.GetCancelForce(),
		Failure:         failureFromWire(j.GetFailure()),
		Report:          reportFromWire(j.GetReport()),
		Redrives:        orchestrator.JobID(j.GetRedrives()),
		RedrivenBy:      orchestrator.JobID(j.GetRedrivenBy()),
		SubmittedBy:     peerFromWire(j.GetSubmittedBy()),
		CreatedAt:       timeFromWire(j.GetCreatedAt()),
		StartedAt:       timeFromWire(j.GetStartedAt()),
		FinishedAt:      timeFromWire(j.GetFinishedAt()),
	}
}

func jobSpecToWire(s orchestrator.JobSpec) *exocompv1.JobSpec {
	return &exocompv1.JobSpec{
		Hosts:         s.Hosts,
		Rotate:        s.Rotate,
		AcceptLost:    s.AcceptLost,
		SshIdentities: s.SSHIdentities,
		RefreshOnly:   s.RefreshOnly,
		Watched:       s.Watched,
		Play:          playSpecToWire(s.Play),
		Args:          s.Args,
		Egress:        convert(s.Egress, portToWire),
		NoAdmit:       s.NoAdmit,
		KeepGoing:     s.KeepGoing,
		Schedule:      s.Schedule,
	}
}

func jobSpecFromWire(s *exocompv1.JobSpec) orchestrator.JobSpec {
	return orchestrator.JobSpec{
		Hosts:         s.GetHosts(),
		Rotate:        s.GetRotate(),
		AcceptLost:    s.GetAcceptLost(),
		SSHIdentities: s.GetSshIdentities(),
		RefreshOnly:   s.GetRefreshOnly(),
		Watched:       s.GetWatched(),
		Play:          optional(s.GetPlay(), playSpecFromWire),
		Args:          s.GetArgs(),
		Egress:        convert(s.GetEgress(), portFromWire),
		NoAdmit:       s.GetNoAdmit(),
		KeepGoing:     s.GetKeepGoing(),
		Schedule:      s.GetSchedule(),
	}
}

func playSpecToWire(s *orchestrator.PlaySpec) *exocompv1.PlaySpec {
	if s == nil {
		return nil
	}
	return &exocompv1.PlaySpec{
		Playbook:      playbookToWire(&s.Playbook),
		Vars:          s.Vars,
		SshIdentities: s.SSHIdentities,
	}
}

func playSpecFromWire(s *exocompv1.PlaySpec) orchestrator.PlaySpec {
	return orchestrator.PlaySpec{
		Playbook:      playbookFromWire(s.GetPlaybook()),
		Vars:          s.GetVars(),
		SSHIdentities: s.GetSshIdentities(),
	}
}

// attemptToWire leaves the token out: it never crosses the contract.
func attemptToWire(a orchestrator.Attempt) *exocompv1.Attempt {
	return &exocompv1.Attempt{Number: int64(a.Number), Id: string(a.ID)}
}

func attemptFromWire(a *exocompv1.Attempt) orchestrator.Attempt {
	return orchestrator.Attempt{Number: int(a.GetNumber()), ID: orchestrator.AttemptID(a.GetId())}
}

func jobFilterToWire(f orchestrator.JobFilter) *exocompv1.ListJobsRequest {
	return &exocompv1.ListJobsRequest{
		Workspace: f.Workspace,
		RunId:     string(f.Run),
		State:     jobStates.wire(f.State),
		Limit:     int64(f.Limit),
	}
}

func jobFilterFromWire(f *exocompv1.ListJobsRequest) orchestrator.JobFilter {
	return orchestrator.JobFilter{
		Workspace: f.GetWorkspace(),
		Run:       orchestrator.RunID(f.GetRunId()),
		State:     jobStates.domain(f.GetState()),
		Limit:     int(f.GetLimit()),
	}
}
