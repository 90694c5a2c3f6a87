package playbook

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// What was listed as a file or a directory may be a named pipe when it is
// opened, to which nobody writes. A test of this hangs where the code does.
func TestNothingIsWaitedForThatBecameAPipe(t *testing.T) {
	top := lay(t, map[string]string{"file": "text", "real/x": "", "link -> file": ""})
	if err := syscall.Mkfifo(filepath.Join(top, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir, err := os.OpenRoot(top)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if content, err := read(dir, "file", 10); err != nil || string(content) != "text" {
		t.Errorf("a file is %q, %v", content, err)
	}
	for _, p := range []string{"pipe", "link", "real"} {
		if _, err := read(dir, p, 10); orchestrator.CodeOf(err) != orchestrator.CodeInvalid || !strings.Contains(err.Error(), p+": changed while") {
			t.Errorf("%s instead of a file: %v, want that it changed", p, err)
		}
	}
	// Between the look and the opening.
	if f, err := open(dir, "pipe"); err == nil {
		_ = f.Close()
	}
	if _, err := (listing{dir.FS(), dir}).ReadDir("pipe"); err == nil {
		t.Error("a pipe can be listed")
	}
}

func TestMistakesOfATreeAreNotListedByTheThousand(t *testing.T) {
	files := map[string]string{"site.yml": ""}
	for i := range 25 {
		files[fmt.Sprintf("l%02d -> /etc/passwd", i)] = ""
	}
	_, err := Take(context.Background(), lay(t, files), "site.yml")
	if orchestrator.CodeOf(err) != orchestrator.CodeInvalid {
		t.Fatal(err)
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != maxMistakes+1 || !strings.HasPrefix(lines[0], "l00: ") || lines[maxMistakes] != "and 5 more" {
		t.Errorf("%d lines, want %d and how many more:\n%s", len(lines), maxMistakes, err)
	}
}
