package tofuapply

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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

// A configuration file may have become a named pipe since it was registered.
func TestWhatIsDigestedIsAFile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "main.tf")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := digestFile(io.Discard, pipe); err == nil || !strings.Contains(err.Error(), pipe+": not a regular file") {
		t.Errorf("a named pipe: %v, want an error that names it", err)
	}
}
