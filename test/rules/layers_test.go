package rules

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// layers lists the packages from the bottom up; each may import only what stands
// in a line above its own. A name ending in "/..." covers the packages below it,
// one ending in "/*" makes a room of each of its children; every other name is
// a room with what is below it, and "orchestrator" alone is just the domain.
var layers = [][]string{
	{"orchestrator", "proto/...", "seeds", "orchestrator/internal/fault"},
	{"orchestrator/internal/durable", "orchestrator/internal/child"},
	{"orchestrator/inventory", "orchestrator/playbook"},
	{"orchestrator/rpc"},
	{
		"orchestrator/internal/ledger", "orchestrator/internal/secrets", "orchestrator/internal/hostkeys",
		"orchestrator/internal/sandbox",
	},
	{"orchestrator/internal/publish"}, // known_hosts in the form of hostkeys
	{"orchestrator/internal/jobs"},
	{"orchestrator/internal/ansible", "orchestrator/internal/tofu"},
	{"orchestrator/internal/steps/*"},
	{"orchestrator/internal/engine", "orchestrator/internal/schedule", "orchestrator/internal/watch"},
	{"orchestrator/internal/notify", "orchestrator/internal/web", "orchestrator/internal/metrics"},
	{"orchestrator/internal/daemon"},
	{"orchestrator/internal/cli"},
	{"orchestrator/cmd/..."},
}

// clients lists the trees outside the layers, with all that each may import of
// the module besides itself.
var clients = map[string][]string{
	"provider":         {"orchestrator", "orchestrator/inventory", "orchestrator/playbook", "orchestrator/rpc"},
	"inventory-plugin": {"orchestrator", "orchestrator/inventory", "orchestrator/playbook", "orchestrator/rpc"},
	"test":             {"orchestrator", "orchestrator/rpc"},
}

// room is the part of the tree whose packages may import one another freely, and
// its layer's number; clients have the number -1.
type room struct {
	name  string
	layer int
}

// roomOf places the package in dir; ok is false for one that no layer names.
func roomOf(dir string) (r room, ok bool) {
	for tree := range clients {
		if within(dir, tree) {
			return room{tree, -1}, true
		}
	}
	if dir == "orchestrator" {
		return room{dir, 0}, true
	}
	for i, layer := range layers {
		for _, name := range layer {
			if base, found := strings.CutSuffix(name, "/*"); found {
				if child, below := strings.CutPrefix(dir, base+"/"); below {
					first, _, _ := strings.Cut(child, "/")
					return room{base + "/" + first, i}, true
				}
				continue
			}
			base := strings.TrimSuffix(name, "/...")
			if name != "orchestrator" && within(dir, base) {
				return room{base, i}, true
			}
		}
	}
	return room{}, false
}

// within says whether dir is tree or lies below it.
func within(dir, tree string) bool {
	return dir == tree || strings.HasPrefix(dir, tree+"/")
}

// testHelper says whether dir is a package for tests only, by its name
// ("ledgertest") or its place.
func testHelper(dir string) bool {
	return within(dir, "test") || strings.HasSuffix(path.Base(dir), "test")
}

// violation says why file may not import the module's package imported, or "".
func violation(file sourceFile, imported string) string {
	fromTest := file.test || testHelper(file.dir)
	if testHelper(imported) {
		if fromTest {
			return ""
		}
		return "only tests import a test helper"
	}
	from, ok := roomOf(file.dir)
	if !ok {
		return "its own package has no layer: give it one in layers_test.go"
	}
	to, ok := roomOf(imported)
	if !ok {
		return "that package has no layer: give it one in layers_test.go"
	}
	switch {
	case from.name == to.name:
		return ""
	case from.layer < 0:
		if !slices.Contains(clients[from.name], imported) {
			return fmt.Sprintf("%s may import only %s", from.name, strings.Join(clients[from.name], ", "))
		}
		return ""
	case to.layer < 0:
		return "nothing below the clients imports them"
	case to.name == "proto" && from.name != "orchestrator/rpc":
		return "only orchestrator/rpc imports proto"
	case to.name == "orchestrator/internal/ledger" && from.name != "orchestrator/internal/daemon" && !fromTest:
		return "only the daemon imports the ledger; declare the methods that you need"
	case to.layer >= from.layer:
		return fmt.Sprintf("imports go downward: %s is layer %d, %s is layer %d", from.name, from.layer, to.name, to.layer)
	}
	return ""
}

func TestImportsGoDownward(t *testing.T) {
	for _, file := range sources(t) {
		if _, ok := roomOf(file.dir); !ok {
			t.Errorf("%s: package %s has no layer: give it one in layers_test.go", file.path, file.dir)
			continue
		}
		for _, imported := range file.imports {
			dir, ours := strings.CutPrefix(imported, module)
			if !ours {
				continue
			}
			if why := violation(file, dir); why != "" {
				t.Errorf("%s imports %s: %s", file.path, dir, why)
			}
		}
	}
}

func TestDomainImportsOnlyTheStandardLibrary(t *testing.T) {
	for _, file := range sources(t) {
		if file.dir != "orchestrator" || file.test {
			continue
		}
		for _, imported := range file.imports {
			if first, _, _ := strings.Cut(imported, "/"); strings.Contains(first, ".") {
				t.Errorf("%s imports %s: the domain knows no technology", file.path, imported)
			}
		}
	}
}

// TestViolations holds the rules themselves: each case would otherwise pass
// unnoticed until the first package that breaks it.
func TestViolations(t *testing.T) {
	cases := []struct {
		file, imported string
		allowed        bool
	}{
		{"orchestrator/run.go", "orchestrator/inventory", false},
		{"orchestrator/internal/fault/fault.go", "orchestrator", false},
		{"orchestrator/internal/durable/file.go", "orchestrator/internal/fault", true},
		{"orchestrator/inventory/derive.go", "orchestrator", true},
		{"orchestrator/inventory/derive.go", "orchestrator/playbook", false},
		{"orchestrator/inventory/derive.go", "orchestrator/rpc", false},
		{"orchestrator/rpc/client.go", "proto/exocomp/v1", true},
		{"orchestrator/internal/cli/run.go", "proto/exocomp/v1", false},
		{"orchestrator/internal/cli/run_test.go", "proto/exocomp/v1", false},
		{"orchestrator/internal/ledger/run.go", "orchestrator/internal/ledger/migrations", true},
		{"orchestrator/internal/daemon/wire.go", "orchestrator/internal/ledger", true},
		{"orchestrator/internal/engine/release.go", "orchestrator/internal/ledger", false},
		{"orchestrator/internal/engine/release_test.go", "orchestrator/internal/ledger", true},
		{"orchestrator/internal/engine/release_test.go", "orchestrator/internal/daemon", false},
		{"orchestrator/internal/jobs/queue.go", "orchestrator/internal/sandbox", true},
		{"orchestrator/internal/sandbox/shim.go", "orchestrator/internal/jobs", false},
		{"orchestrator/internal/ansible/argv.go", "orchestrator/internal/tofu", false},
		{"orchestrator/internal/steps/play/play.go", "orchestrator/internal/ansible", true},
		{"orchestrator/internal/steps/play/play.go", "orchestrator/internal/steps/onboard", false},
		{"orchestrator/internal/steps/play/play_test.go", "orchestrator/internal/steps/steptest", true},
		{"orchestrator/internal/steps/play/play.go", "orchestrator/internal/steps/steptest", false},
		{"orchestrator/internal/engine/release.go", "orchestrator/internal/web", false},
		{"orchestrator/internal/daemon/wire.go", "orchestrator/internal/cli", false},
		{"orchestrator/cmd/exocomp/main.go", "orchestrator/internal/cli", true},
		{"orchestrator/internal/cli/run.go", "provider/internal/provider", false},
		{"provider/cmd/terraform-provider-exocomp/main.go", "provider/internal/provider", true},
		{"provider/internal/provider/provision.go", "orchestrator/rpc", true},
		{"provider/internal/provider/provision.go", "orchestrator/internal/durable", false},
		{"provider/internal/provider/provision.go", "inventory-plugin/internal/list", false},
		{"inventory-plugin/internal/list/list.go", "orchestrator/playbook", true},
		{"inventory-plugin/internal/list/list.go", "proto/exocomp/v1", false},
		{"test/e2e/gate_test.go", "orchestrator/rpc", true},
		{"test/e2e/gate_test.go", "test/nethost", true},
		{"test/e2e/gate_test.go", "orchestrator/internal/ledger", false},
		{"orchestrator/internal/hostkeys/scan.go", "test/nethost", false},
		{"orchestrator/internal/hostkeys/scan_test.go", "test/nethost", true},
		{"orchestrator/internal/novel/novel.go", "orchestrator", false},
	}
	for _, c := range cases {
		file := sourceFile{path: c.file, dir: path.Dir(c.file), test: strings.HasSuffix(c.file, "_test.go")}
		why := violation(file, c.imported)
		if allowed := why == ""; allowed != c.allowed {
			t.Errorf("%s imports %s: allowed %t, want %t (%s)", c.file, c.imported, allowed, c.allowed, why)
		}
	}
}
