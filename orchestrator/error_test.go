package orchestrator_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

func TestErrorMatchesItsSentinelAndItsCause(t *testing.T) {
	err := fmt.Errorf("open ledger: %w",
		orchestrator.Errorf(orchestrator.CodeNotFound, "no such file: %w", fs.ErrNotExist).WithHint("create it"))
	if !errors.Is(err, orchestrator.ErrNotFound) {
		t.Error("does not match ErrNotFound")
	}
	if errors.Is(err, orchestrator.ErrConflict) {
		t.Error("matches ErrConflict")
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error("does not match its cause")
	}
	if got, want := orchestrator.CodeOf(err), orchestrator.CodeNotFound; got != want {
		t.Errorf("CodeOf = %s, want %s", got, want)
	}
}

func TestFailureKeepsMessageAndHintApart(t *testing.T) {
	err := fmt.Errorf("apply edge: %w", orchestrator.Errorf(orchestrator.CodeRefused, "no").WithHint("type this"))
	f := orchestrator.FailureOf(err)
	want := orchestrator.Failure{Code: orchestrator.CodeRefused, Message: "apply edge: no", Hint: "type this"}
	if *f != want {
		t.Errorf("FailureOf = %+v, want %+v", *f, want)
	}
	if got := f.Err().Error(); got != "apply edge: no; type this" {
		t.Errorf("Err = %q", got)
	}
}
