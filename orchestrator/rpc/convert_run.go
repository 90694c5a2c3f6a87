package rpc

import (
	"github.com/exocomp/exocomp/orchestrator"
	exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"
)

func runToWire(r orchestrator.Run) *exocompv1.Run {
	return &exocompv1.Run{
		Id:          string(r.ID),
		Kind:        runKinds.wire(r.Kind),
		Workspace:   r.Workspace,
		State:       runStates.wire(r.State),
		Spec:        runSpecToWire(r.Spec),
		Inventory:   r.Inventory,
		SubmittedBy: peerToWire(r.SubmittedBy),
		CreatedAt:   timeToWire(r.CreatedAt),
		FinishedAt:  timeToWire(r.FinishedAt),
		Steps:       convert(r.Steps, stepToWire),
		Resource:    r.Resource,
	}
}

func runFromWire(r *exocompv1.Run) orchestrator.Run {
	return orchestrator.Run{
		ID:          orchestrator.RunID(r.GetId()),
		Kind:        runKinds.domain(r.GetKind()),
		Workspace:   r.GetWorkspace(),
		State:       runStates.domain(r.GetState()),
		Spec:        runSpecFromWire(r.GetSpec()),
		Inventory:   r.GetInventory(),
		SubmittedBy: peerFromWire(r.GetSubmittedBy()),
		CreatedAt:   timeFromWire(r.GetCreatedAt()),
		FinishedAt:  timeFromWire(r.GetFinishedAt()),
		Steps:       convert(r.GetSteps(), stepFromWire),
		Resource:    r.GetResource(),
	}
}

func runSpecToWire(s orchestrator.RunSpec) *exocompv1.RunSpec {
	return &exocompv1.RunSpec{
		Playbook:        playbookToWire(&s.Playbook),
		OnboardPlaybook: playbookToWire(s.OnboardPlaybook),
		SshWait:         durationToWire(s.SSHWait),
		Egress:          convert(s.Egress, portToWire),
		SshIdentities:   s.SSHIdentities,
		AcceptLost:      s.AcceptLost,
		Args:            s.Args,
		Vars:            s.Vars,
		Revision:        s.Revision,
	}
}

func runSpecFromWire(s *exocompv1.RunSpec) orchestrator.RunSpec {
	return orchestrator.RunSpec{
		Playbook:        playbookFromWire(s.GetPlaybook()),
		OnboardPlaybook: optional(s.GetOnboardPlaybook(), playbookFromWire),
		SSHWait:         s.GetSshWait().AsDuration(),
		Egress:          convert(s.GetEgress(), portFromWire),
		SSHIdentities:   s.GetSshIdentities(),
		AcceptLost:      s.GetAcceptLost(),
		Args:            s.GetArgs(),
		Vars:            s.GetVars(),
		Revision:        s.GetRevision(),
	}
}

func playbookToWire(p *orchestrator.PlaybookRef) *exocompv1.PlaybookRef {
	if p == nil {
		return nil
	}
	return &exocompv1.PlaybookRef{Path: p.Path, Entry: p.Entry, Digest: p.Digest}
}

func playbookFromWire(p *exocompv1.PlaybookRef) orchestrator.PlaybookRef {
	return orchestrator.PlaybookRef{Path: p.GetPath(), Entry: p.GetEntry(), Digest: p.GetDigest()}
}

func runFilterToWire(f orchestrator.RunFilter) *exocompv1.ListRunsRequest {
	return &exocompv1.ListRunsRequest{
		Workspace: f.Workspace,
		State:     runStates.wire(f.State),
		Before:    string(f.Before),
		Limit:     int64(f.Limit),
	}
}

func runFilterFromWire(f *exocompv1.ListRunsRequest) orchestrator.RunFilter {
	return orchestrator.RunFilter{
		Workspace: f.GetWorkspace(),
		State:     runStates.domain(f.GetState()),
		Before:    orchestrator.RunID(f.GetBefore()),
		Limit:     int(f.GetLimit()),
	}
}

func resumeSpecToWire(s ResumeSpec) *exocompv1.ResumeSpec {
	return &exocompv1.ResumeSpec{
		Playbook:        playbookToWire(s.Playbook),
		OnboardPlaybook: playbookToWire(s.OnboardPlaybook),
		SshWait:         durationToWire(s.SSHWait),
		Egress:          convert(s.Egress, portToWire),
		SshIdentities:   s.SSHIdentities,
		AcceptLost:      s.AcceptLost,
		Args:            s.Args,
		From:            stepKinds.wire(s.From),
		FailedOnly:      s.FailedOnly,
	}
}

func resumeSpecFromWire(s *exocompv1.ResumeSpec) ResumeSpec {
	return ResumeSpec{
		From:            stepKinds.domain(s.GetFrom()),
		FailedOnly:      s.GetFailedOnly(),
		Playbook:        optional(s.GetPlaybook(), playbookFromWire),
		OnboardPlaybook: optional(s.GetOnboardPlaybook(), playbookFromWire),
		SSHWait:         s.GetSshWait().AsDuration(),
		Egress:          convert(s.GetEgress(), portFromWire),
		SSHIdentities:   s.GetSshIdentities(),
		AcceptLost:      s.GetAcceptLost(),
		Args:            s.GetArgs(),
	}
}
