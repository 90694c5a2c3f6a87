package tofuapply

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// The mark of an init says nothing of the state: a state that could not be
// ensured the first time, or that is gone, is ensured before the next plan.
func TestEveryApplyEnsuresAState(t *testing.T) {
	s := newSite(t, oneHost)
	s.ledger.ws.Approval = orchestrator.ApprovalAlways // so that nothing else writes it
	state := filepath.Join(s.dir, "terraform.tfstate")
	for _, id := range []orchestrator.AttemptID{"a1", "a2"} {
		s.handle(id, orchestrator.JobSpec{})
		if err := os.Remove(state); err != nil {
			t.Errorf("apply %s ensured no state: %v", id, err)
		}
	}
}
