package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A job that is cancelled ends, also while another caller's question hangs.
func TestWaitingForATurnEndsWithItsContext(t *testing.T) {
	asked := make(chan struct{})
	tool := kept("", "anything", func(ctx context.Context, _ string) (string, error) {
		close(asked)
		<-ctx.Done()
		return "", ctx.Err()
	})
	first, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = tool(first)
	}()
	<-asked
	cancelled := errors.New("somebody cancelled")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cancelled)
	if _, err := tool(ctx); !errors.Is(err, cancelled) {
		t.Errorf("the second caller got %v, want its own cancellation", err)
	}
	end()
	<-done
}

// The system's directory for temporary files is swept by nobody.
func TestTheDaemonAsksForVersionsInItsRuntimeDirectory(t *testing.T) {
	runtime := t.TempDir()
	script := filepath.Join(t.TempDir(), "ansible-playbook")
	said := filepath.Join(t.TempDir(), "home")
	text := "#!/bin/sh\necho \"$HOME\" >" + said + "\necho 'ansible-playbook [core 2.19.0]'\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := newTools(Config{AnsiblePath: script}, runtime).ansible(t.Context()); err != nil {
		t.Fatal(err)
	}
	home, err := os.ReadFile(said)
	if want := filepath.Join(runtime, "ansible-version") + "\n"; err != nil || string(home) != want {
		t.Errorf("it was asked in %q (%v), want %q", home, err, want)
	}
}
