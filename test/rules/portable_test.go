package rules

import (
	"os"
	"slices"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestClientsTypeCheckElsewhere checks, for the systems on which people run
// OpenTofu and Ansible, all that the provider and the inventory executable import.
// The daemon and the CLI are for Linux. Checking from source compiles nothing,
// which for a foreign system would mean the standard library too.
func TestClientsTypeCheckElsewhere(t *testing.T) {
	var patterns []string
	for _, file := range sources(t) {
		pattern := module + file.dir
		if slices.Contains(clients["provider"], file.dir) && !slices.Contains(patterns, pattern) {
			patterns = append(patterns, pattern)
		}
	}
	for _, system := range []string{"darwin", "windows"} {
		t.Run(system, func(t *testing.T) {
			loaded, err := packages.Load(&packages.Config{
				Context: t.Context(),
				Mode: packages.NeedName | packages.NeedImports | packages.NeedDeps | packages.NeedFiles |
					packages.NeedCompiledGoFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo,
				Dir: root(t),
				Env: append(os.Environ(), "GOOS="+system, "GOARCH=arm64", "CGO_ENABLED=0"),
			}, patterns...)
			if err != nil {
				t.Fatal(err)
			}
			if len(loaded) != len(patterns) {
				t.Fatalf("loaded %d packages, want %d", len(loaded), len(patterns))
			}
			packages.Visit(loaded, nil, func(p *packages.Package) {
				for _, problem := range p.Errors {
					t.Errorf("%s for %s: %v", p.PkgPath, system, problem)
				}
			})
		})
	}
}
