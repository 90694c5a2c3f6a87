package rpc

import (
	"github.com/exocomp/exocomp/orchestrator"
	exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"
)

func statusToWire(s Status) *exocompv1.Status {
	return &exocompv1.Status{
		Version:   s.Version,
		StartedAt: timeToWire(s.StartedAt),
		DataDir:   s.DataDir,
		Draining:  s.Draining,
		Workers:   int64(s.Workers),
		Running:   int64(s.Running),
		Queued:    int64(s.Queued),
		LastEvent: s.LastEvent,
		Tools:     convert(s.Tools, toolToWire),
		Warnings:  s.Warnings,

		ConfigFile: s.ConfigFile,
	}
}

func statusFromWire(s *exocompv1.Status) Status {
	return Status{
		Version:   s.GetVersion(),
		StartedAt: timeFromWire(s.GetStartedAt()),
		DataDir:   s.GetDataDir(),
		Draining:  s.GetDraining(),
		Workers:   int(s.GetWorkers()),
		Running:   int(s.GetRunning()),
		Queued:    int(s.GetQueued()),
		LastEvent: s.GetLastEvent(),
		Tools:     convert(s.GetTools(), toolFromWire),
		Warnings:  s.GetWarnings(),

		ConfigFile: s.GetConfigFile(),
	}
}

func toolToWire(t Tool) *exocompv1.Tool {
	return &exocompv1.Tool{Name: t.Name, Path: t.Path, Version: t.Version, Error: t.Error, Hint: t.Hint}
}

func toolFromWire(t *exocompv1.Tool) Tool {
	return Tool{Name: t.GetName(), Path: t.GetPath(), Version: t.GetVersion(), Error: t.GetError(), Hint: t.GetHint()}
}

func peerToWire(p orchestrator.Peer) *exocompv1.Peer {
	return &exocompv1.Peer{Uid: int64(p.UID), Gid: int64(p.GID), Pid: int64(p.PID), Name: p.Name}
}

func peerFromWire(p *exocompv1.Peer) orchestrator.Peer {
	return orchestrator.Peer{UID: int(p.GetUid()), GID: int(p.GetGid()), PID: int(p.GetPid()), Name: p.GetName()}
}

func failureToWire(f *orchestrator.Failure) *exocompv1.Failure {
	if f == nil {
		return nil
	}
	return &exocompv1.Failure{Code: errorCodes.wire(f.Code), Message: f.Message, Hint: f.Hint}
}

func failureFromWire(f *exocompv1.Failure) *orchestrator.Failure {
	if f == nil {
		return nil
	}
	return &orchestrator.Failure{Code: errorCodes.domain(f.GetCode()), Message: f.GetMessage(), Hint: f.GetHint()}
}
