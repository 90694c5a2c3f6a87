package rpc

import (
	"github.com/exocomp/exocomp/orchestrator"
	exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"
)

func workspaceToWire(w orchestrator.Workspace) *exocompv1.Workspace {
	return &exocompv1.Workspace{
		Name:          w.Name,
		Dir:           w.Dir,
		TofuWorkspace: w.TofuWorkspace,
		VarFiles:      w.VarFiles,
		BackendConfig: w.BackendConfig,
		CliConfig:     w.CLIConfig,
		Approval:      approvalPolicies.wire(w.Approval),
		Watch:         w.Watch,
		CreatedAt:     timeToWire(w.CreatedAt),
		UpdatedAt:     timeToWire(w.UpdatedAt),
		Lost:          convert(w.Lost, lostToWire),
	}
}

func workspaceFromWire(w *exocompv1.Workspace) orchestrator.Workspace {
	return orchestrator.Workspace{
		Name:          w.GetName(),
		Dir:           w.GetDir(),
		TofuWorkspace: w.GetTofuWorkspace(),
		VarFiles:      w.GetVarFiles(),
		BackendConfig: w.GetBackendConfig(),
		CLIConfig:     w.GetCliConfig(),
		Approval:      approvalPolicies.domain(w.GetApproval()),
		Watch:         w.GetWatch(),
		CreatedAt:     timeFromWire(w.GetCreatedAt()),
		UpdatedAt:     timeFromWire(w.GetUpdatedAt()),
		Lost:          convert(w.GetLost(), lostFromWire),
	}
}

func lostToWire(l orchestrator.LostCreate) *exocompv1.LostCreate {
	return &exocompv1.LostCreate{
		Address: l.Address, Id: l.ID, PriorId: l.PriorID,
		JobId: string(l.Job), Since: timeToWire(l.Since),
	}
}

func lostFromWire(l *exocompv1.LostCreate) orchestrator.LostCreate {
	return orchestrator.LostCreate{
		Address: l.GetAddress(), ID: l.GetId(), PriorID: l.GetPriorId(),
		Job: orchestrator.JobID(l.GetJobId()), Since: timeFromWire(l.GetSince()),
	}
}
