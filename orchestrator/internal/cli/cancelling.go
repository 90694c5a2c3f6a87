package cli

import (
	"context"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// cancelNote says of a run whose end was asked for what it waits for, and is
// empty for any other, and for who may not look at jobs.
func cancelNote(ctx context.Context, cl *rpc.Client, run orchestrator.Run) string {
	if cl.Role() != rpc.RoleOperator {
		return ""
	}
	for _, s := range run.Steps {
		if s.State != orchestrator.StepRunning {
			continue
		}
		j, err := cl.GetJob(ctx, s.Job)
		switch {
		case err != nil || !j.CancelRequested || j.State.Final():
		case j.CancelForce:
			return "a cancel by force was requested: what is left of the tool is being ended"
		default:
			return "a cancel was requested: the tool may save its state first; to end it at once: " +
				orchestrator.ShellCommand("exocomp", "provision", "cancel", string(run.ID), "--force")
		}
	}
	return ""
}
