package inventorytest

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

//go:embed list.py
var listScript string

// List runs `ansible-inventory --list` on each source by itself, a file or an
// executable, and writes what it prints to a file beside it, SOURCE.out. The
// command's own code does it, through the interpreter that it names, in one
// process: starting Ansible for each would take most of the time. env is added to
// the little that the process has of its environment.
func List(t *testing.T, sources []string, env ...string) {
	t.Helper()
	tool, err := exec.LookPath("ansible-inventory")
	if err != nil {
		t.Fatal("ansible-inventory is not installed; make setup installs ansible-core")
	}
	script, err := os.ReadFile(tool)
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(script), "\n")
	python := strings.Fields(strings.TrimPrefix(line, "#!"))
	if len(python) == 0 || !strings.Contains(line, "python") {
		t.Fatalf("%s is no Python script but a wrapper: put the directory of the real one first in PATH", tool)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "ansible.cfg")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python[0], slices.Concat(python[1:], []string{"-"}, sources)...)
	cmd.Stdin = strings.NewReader(listScript)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C.UTF-8", "ANSIBLE_CONFIG=" + config,
		"ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED=1"}, env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
