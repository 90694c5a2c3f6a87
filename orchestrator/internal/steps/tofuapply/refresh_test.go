package tofuapply

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

const oneHost = `
resource "terraform_data" "web" {}
output "hosts" {
  value = { web1 = { ansible_host = "192.0.2.1", id = terraform_data.web.id } }
}
`

// A refresh reads the outputs of what was applied. Where nothing was, also with
// the empty state of an apply that did not come to its end, it is refused: tofu
// says that there are no outputs, which is no reason to empty an inventory.
func TestRefreshReadsOnlyWhatWasApplied(t *testing.T) {
	s := newSite(t, oneHost)
	refused := func(id orchestrator.AttemptID, when string) {
		t.Helper()
		f := s.handle(id, orchestrator.JobSpec{RefreshOnly: true}).Failure
		if f == nil || f.Code != orchestrator.CodeRefused || !strings.Contains(f.Hint, "exocomp workspace apply edge") {
			t.Errorf("a refresh %s: %+v", when, f)
		}
	}
	refused("r1", "without a state")
	s.ledger.ws.Approval = orchestrator.ApprovalAlways
	if out := s.handle("a1", orchestrator.JobSpec{}); out.Succeeded() {
		t.Fatal("the gate is open")
	}
	if _, err := os.Stat(filepath.Join(s.dir, "terraform.tfstate")); err != nil {
		t.Fatalf("an apply that was refused has not even ensured a state: %v", err)
	}
	refused("r2", "of an empty state")

	s.ledger.ws.Approval = orchestrator.ApprovalNever
	if out := s.handle("a2", orchestrator.JobSpec{}); !out.Succeeded() {
		t.Fatalf("apply: %+v", out.Failure)
	}
	// as after a fresh clone: the refresh initializes by itself
	if err := os.RemoveAll(s.handler.InitDir); err != nil {
		t.Fatal(err)
	}
	if out := s.handle("r3", orchestrator.JobSpec{RefreshOnly: true}); !out.Succeeded() || len(out.Inventory.Hosts) != 1 {
		t.Errorf("a refresh of an applied workspace: %+v, %+v", out.Failure, out.Inventory)
	}
	if err := os.Remove(filepath.Join(s.dir, "terraform.tfstate")); err != nil {
		t.Fatal(err)
	}
	refused("r4", "after the state was lost")
	// nor does the mark of the init keep the next apply from a state that it can save to
	if out := s.handle("a3", orchestrator.JobSpec{}); !out.Succeeded() {
		t.Fatalf("apply: %+v", out.Failure)
	}
}

// A module whose backend must be initialized is, before its outputs are read.
func TestRefreshInitializes(t *testing.T) {
	s := newSite(t, "terraform {\n  backend \"local\" {}\n}\n"+oneHost)
	s.ledger.ws.BackendConfig = []string{"path=kept.tfstate"}
	if out := s.handle("a1", orchestrator.JobSpec{}); !out.Succeeded() {
		t.Fatalf("apply: %+v", out.Failure)
	}
	for _, lost := range []string{filepath.Join(s.dir, ".terraform"), s.handler.InitDir} {
		if err := os.RemoveAll(lost); err != nil {
			t.Fatal(err)
		}
	}
	if out := s.handle("r1", orchestrator.JobSpec{RefreshOnly: true}); !out.Succeeded() || len(out.Inventory.Hosts) != 1 {
		t.Errorf("refresh: %+v, %+v", out.Failure, out.Inventory)
	}
}

// Outputs that cannot be an inventory are corrected in the configuration, and no
// refresh ever sees that.
func TestARefreshOfWrongOutputsAsksForAnApply(t *testing.T) {
	s := newSite(t, "output \"hosts\" {\n  value = [\"web1\"]\n}\n")
	for _, id := range []orchestrator.AttemptID{"a1", "r1"} {
		f := s.handle(id, orchestrator.JobSpec{RefreshOnly: id == "r1"}).Failure
		if f == nil || !strings.HasSuffix(f.Hint, "then: exocomp workspace apply edge") {
			t.Errorf("%s: %+v, want a hint to apply", id, f)
		}
	}
}
