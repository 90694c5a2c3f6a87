package rpc

import (
	"github.com/exocomp/exocomp/orchestrator"
	exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"
)

func ensureRunToWire(e orchestrator.EnsureRun) *exocompv1.EnsureRunRequest {
	env := make(map[string]string, len(e.Env))
	for name, value := range e.Env {
		env[name] = value.Reveal()
	}
	return &exocompv1.EnsureRunRequest{
		Workspace: e.Workspace,
		Owner:     e.Owner.Reveal(),
		Claim:     e.Claim,
		Inventory: handedToWire(e.Inventory),
		Spec:      runSpecToWire(e.Spec),
		Env:       env,
		Attempt:   e.Attempt.Reveal(),
		Dir:       e.Dir,
	}
}

// ensureRunFromWire leaves By to the service, which knows the peer.
func ensureRunFromWire(e *exocompv1.EnsureRunRequest) orchestrator.EnsureRun {
	var env map[string]orchestrator.Secret
	if len(e.GetEnv()) > 0 {
		env = make(map[string]orchestrator.Secret, len(e.GetEnv()))
	}
	for name, value := range e.GetEnv() {
		env[name] = orchestrator.NewSecret(value)
	}
	return orchestrator.EnsureRun{
		Workspace: e.GetWorkspace(),
		Owner:     orchestrator.NewSecret(e.GetOwner()),
		Claim:     e.GetClaim(),
		Inventory: optional(e.GetInventory(), handedFromWire),
		Spec:      runSpecFromWire(e.GetSpec()),
		Env:       env,
		Attempt:   orchestrator.NewSecret(e.GetAttempt()),
		Dir:       e.GetDir(),
	}
}

func handedToWire(h *orchestrator.HandedInventory) *exocompv1.HandedInventory {
	switch {
	case h == nil:
		return nil
	case len(h.Tree) > 0:
		return &exocompv1.HandedInventory{Form: &exocompv1.HandedInventory_Tree{Tree: h.Tree}}
	default:
		return &exocompv1.HandedInventory{Form: &exocompv1.HandedInventory_Hosts{Hosts: h.Hosts}}
	}
}

func handedFromWire(h *exocompv1.HandedInventory) orchestrator.HandedInventory {
	return orchestrator.HandedInventory{Tree: h.GetTree(), Hosts: h.GetHosts()}
}

func ensuredToWire(e orchestrator.Ensured) *exocompv1.EnsureRunResponse {
	return &exocompv1.EnsureRunResponse{Run: runToWire(e.Run), Waiting: e.Waiting, Deferred: e.Deferred}
}

func ensuredFromWire(e *exocompv1.EnsureRunResponse) orchestrator.Ensured {
	return orchestrator.Ensured{Run: runFromWire(e.GetRun()), Waiting: e.GetWaiting(), Deferred: e.GetDeferred()}
}

func endProvisionToWire(e orchestrator.EndProvision) *exocompv1.EndProvisionRequest {
	return &exocompv1.EndProvisionRequest{
		Workspace: e.Workspace,
		Owner:     e.Owner.Reveal(),
		RunId:     string(e.Run),
		Leave:     playSpecToWire(e.Leave),
		Attempt:   e.Attempt.Reveal(),
	}
}

// endProvisionFromWire leaves By to the service, which knows the peer.
func endProvisionFromWire(e *exocompv1.EndProvisionRequest) orchestrator.EndProvision {
	return orchestrator.EndProvision{
		Workspace: e.GetWorkspace(),
		Owner:     orchestrator.NewSecret(e.GetOwner()),
		Run:       orchestrator.RunID(e.GetRunId()),
		Leave:     optional(e.GetLeave(), playSpecFromWire),
		Attempt:   orchestrator.NewSecret(e.GetAttempt()),
	}
}

func provisionEndToWire(e orchestrator.ProvisionEnd) *exocompv1.EndProvisionResponse {
	return &exocompv1.EndProvisionResponse{RunId: string(e.Run), JobId: string(e.Job), Ended: e.Ended, Stranger: e.Stranger}
}

func provisionEndFromWire(e *exocompv1.EndProvisionResponse) orchestrator.ProvisionEnd {
	return orchestrator.ProvisionEnd{
		Run: orchestrator.RunID(e.GetRunId()), Job: orchestrator.JobID(e.GetJobId()), Ended: e.GetEnded(), Stranger: e.GetStranger(),
	}
}
