package tofu

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

// A wrapper's child holds the pipe: ending the wrapper alone would not end the
// question.
func TestAToolThatDoesNotSayItsVersionIsGivenUp(t *testing.T) {
	wrapper := filepath.Join(t.TempDir(), "tofu")
	if err := os.WriteFile(wrapper, []byte("#!/bin/sh\nsleep 100\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := locate(t.Context(), wrapper, 100*time.Millisecond)
	want := "ask " + wrapper + " for its version: version -json: it did not end within 100ms"
	if orchestrator.CodeOf(err) != orchestrator.CodeFailed || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), wrapper+" version; then: exocomp doctor") {
		t.Errorf("got %v, want %q and what to try", err, want)
	}
}
