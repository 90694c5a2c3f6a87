package rules

import (
	"os"
	"os/exec"
	"slices"
	"testing"
)

// TestClientsCompileElsewhere compiles, for the systems on which people run
// OpenTofu and Ansible, all that the provider and the inventory executable import.
// The daemon and the CLI are for Linux.
func TestClientsCompileElsewhere(t *testing.T) {
	imported := clients["provider"]
	var packages []string
	for _, file := range sources(t) {
		if slices.Contains(imported, file.dir) && !slices.Contains(packages, module+file.dir) {
			packages = append(packages, module+file.dir)
		}
	}
	for _, system := range []string{"darwin", "windows"} {
		t.Run(system, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "go", append([]string{"build", "-buildvcs=false"}, packages...)...)
			cmd.Dir = root(t)
			cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=arm64", "CGO_ENABLED=0")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("go build for %s: %v\n%s", system, err, out)
			}
		})
	}
}
