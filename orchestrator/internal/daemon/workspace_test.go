package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

func TestARootModuleHasOneName(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	link := filepath.Join(other, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	all := []orchestrator.Workspace{
		{Name: "edge", Dir: dir},
		{Name: "blue", Dir: dir, TofuWorkspace: "blue"},
		{Name: "gone", Dir: filepath.Join(other, "gone")},
	}
	for _, c := range []struct {
		w    orchestrator.Workspace
		says string
	}{
		{orchestrator.Workspace{Name: "edge", Dir: dir}, ""},
		{orchestrator.Workspace{Name: "new", Dir: other}, ""},
		{orchestrator.Workspace{Name: "new", Dir: dir, TofuWorkspace: "green"}, ""},
		{orchestrator.Workspace{Name: "new", Dir: dir}, "workspace edge"},
		{orchestrator.Workspace{Name: "new", Dir: link}, "workspace edge"},
		{orchestrator.Workspace{Name: "new", Dir: dir, TofuWorkspace: "default"}, "workspace edge"},
		{orchestrator.Workspace{Name: "new", Dir: dir, BackendConfig: []string{"key=value"}}, "workspace edge"},
		{orchestrator.Workspace{Name: "new", Dir: dir, TofuWorkspace: "blue"}, "workspace blue"},
	} {
		err := refuseSecondName(all, c.w)
		if c.says == "" && err != nil || c.says != "" && (!errors.Is(err, orchestrator.ErrConflict) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%+v: %v, want %q", c.w, err, c.says)
		}
	}
}
