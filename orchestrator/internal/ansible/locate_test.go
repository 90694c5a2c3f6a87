package ansible

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

// A wrapper's child holds the pipe: ending the wrapper alone would not end the
// question, for whoever cancels it as for the limit.
func TestAnAnsibleThatDoesNotSayItsVersionIsGivenUp(t *testing.T) {
	wrapper := filepath.Join(t.TempDir(), "ansible-playbook")
	if err := os.WriteFile(wrapper, []byte("#!/bin/sh\nsleep 100\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	scratch := t.TempDir()
	// As a crash would leave it.
	if err := os.MkdirAll(filepath.Join(scratch, "ansible-version", "left"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := locate(t.Context(), wrapper, scratch, 100*time.Millisecond)
	wantCode(t, err, orchestrator.CodeFailed, "ask "+wrapper+" for its version: it did not end within 100ms", wrapper+" --version; then: exocomp doctor")

	cancelled := errors.New("somebody cancelled")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(cancelled) })
	if _, err := Locate(ctx, wrapper, scratch); !errors.Is(err, cancelled) {
		t.Errorf("cancelled: %v", err)
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("in the scratch directory are left %v (%v)", left, err)
	}
}
