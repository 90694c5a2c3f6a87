package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// built are the executables of `make build`, each with its directory.
var built = regexp.MustCompile(`(?m)^\tgo build .*-o (bin/\S+) \./([^/\s]+)/`)

// TestTheGateRebuildsWhatItRuns holds the gate's list of executables, and of
// directories that they are built from, against the makefile's.
func TestTheGateRebuildsWhatItRuns(t *testing.T) {
	var texts [2]string
	for i, name := range []string{"GNUmakefile", "test/e2e/provision-converge-gate.sh"} {
		data, err := os.ReadFile(filepath.Join(root(t), name))
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(data)
	}
	executables := built.FindAllStringSubmatch(texts[0], -1)
	if len(executables) == 0 {
		t.Fatal("the makefile builds nothing")
	}
	_, search, _ := strings.Cut(texts[1], "$(find ")
	search, _, _ = strings.Cut(search, "-newer")
	for _, x := range executables {
		if !regexp.MustCompile(`stale ` + x[1] + `( |;)`).MatchString(texts[1]) {
			t.Errorf("the gate does not look whether %s is stale", x[1])
		}
		if !strings.Contains(" "+search, " "+x[2]+" ") {
			t.Errorf("the gate does not see changes below %s, of which %s is built", x[2], x[1])
		}
	}
}
