package rpc

import (
	"github.com/exocomp/exocomp/orchestrator"
	exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"
)

func pinToWire(p orchestrator.Pin) *exocompv1.Pin {
	return &exocompv1.Pin{
		Host:       p.Host,
		Port:       portToWire(p.Port),
		KeyType:    p.KeyType,
		Key:        p.Key,
		Sha256:     p.SHA256,
		Source:     pinSources.wire(p.Source),
		InstanceId: p.InstanceID,
		AddedAt:    timeToWire(p.AddedAt),
		RetiredAt:  timeToWire(p.RetiredAt),
		Retired:    p.Retired,
		Users:      convert(p.Users, pinUserToWire),
	}
}

func pinFromWire(p *exocompv1.Pin) orchestrator.Pin {
	return orchestrator.Pin{
		Host:       p.GetHost(),
		Port:       portFromWire(p.GetPort()),
		KeyType:    p.GetKeyType(),
		Key:        p.GetKey(),
		SHA256:     p.GetSha256(),
		Source:     pinSources.domain(p.GetSource()),
		InstanceID: p.GetInstanceId(),
		AddedAt:    timeFromWire(p.GetAddedAt()),
		RetiredAt:  timeFromWire(p.GetRetiredAt()),
		Retired:    p.GetRetired(),
		Users:      convert(p.GetUsers(), pinUserFromWire),
	}
}

func pinUserToWire(u orchestrator.PinUser) *exocompv1.PinUser {
	return &exocompv1.PinUser{Workspace: u.Workspace, Host: u.Host}
}

func pinUserFromWire(u *exocompv1.PinUser) orchestrator.PinUser {
	return orchestrator.PinUser{Workspace: u.GetWorkspace(), Host: u.GetHost()}
}

func pinFilterToWire(f orchestrator.PinFilter) *exocompv1.ListPinsRequest {
	return &exocompv1.ListPinsRequest{IncludeRetired: f.IncludeRetired, Workspace: f.Workspace}
}

func pinFilterFromWire(f *exocompv1.ListPinsRequest) orchestrator.PinFilter {
	return orchestrator.PinFilter{IncludeRetired: f.GetIncludeRetired(), Workspace: f.GetWorkspace()}
}

func onboardSpecToWire(s OnboardSpec) *exocompv1.OnboardSpec {
	return &exocompv1.OnboardSpec{Hosts: s.Hosts, Rotate: s.Rotate, SshIdentities: s.SSHIdentities}
}

func onboardSpecFromWire(s *exocompv1.OnboardSpec) OnboardSpec {
	return OnboardSpec{Hosts: s.GetHosts(), Rotate: s.GetRotate(), SSHIdentities: s.GetSshIdentities()}
}

func onboardVarsToWire(v OnboardVars) *exocompv1.OnboardVars {
	return &exocompv1.OnboardVars{Json: v.JSON, Command: v.Command}
}

func onboardVarsFromWire(v *exocompv1.OnboardVars) OnboardVars {
	return OnboardVars{JSON: v.GetJson(), Command: v.GetCommand()}
}
