package rules

import (
	"os"
	"os/exec"
	"slices"
	"testing"
)

// TestClientsBuildElsewhere builds, for the systems on which people run OpenTofu
// and Ansible, the provider, the inventory executable and all that they import. The
// daemon and the CLI are for Linux. The first build for a system takes a minute,
// for the standard library; the build cache keeps it.
func TestClientsBuildElsewhere(t *testing.T) {
	var patterns []string
	for _, file := range sources(t) {
		pattern := module + file.dir
		own := within(file.dir, "provider") || within(file.dir, "inventory-plugin")
		if (slices.Contains(clients["provider"], file.dir) || own && !file.test) && !slices.Contains(patterns, pattern) {
			patterns = append(patterns, pattern)
		}
	}
	if len(patterns) == 0 {
		t.Fatal("no package of the clients was found")
	}
	for _, system := range []string{"darwin", "windows"} {
		t.Run(system, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "go", append([]string{"build"}, patterns...)...)
			cmd.Dir = root(t)
			cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=arm64", "CGO_ENABLED=0")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}
