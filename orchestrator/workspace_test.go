package orchestrator_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

func TestValidateWorkspaceName(t *testing.T) {
	for _, name := range []string{"edge", "e", "Edge_1-b", strings.Repeat("a", 63)} {
		if err := orchestrator.ValidateWorkspaceName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{
		"", "1edge", "-edge", "_x", "a b", "a.b", "a:b", "a/b", "é", "a\x00", "a\n",
		strings.Repeat("a", 64), "all", "ALL", "ungrouped", "tf", "localhost",
	} {
		if err := orchestrator.ValidateWorkspaceName(name); !errors.Is(err, orchestrator.ErrInvalid) {
			t.Errorf("%q: error %v, want invalid", name, err)
		}
	}
}

func TestWorkspaceValidateReportsEveryMistakeTogether(t *testing.T) {
	err := orchestrator.Workspace{Name: "1", Dir: "rel", VarFiles: []string{"-x"}, Approval: "perhaps"}.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{`"1"`, `"rel"`, `"-x"`, `"perhaps"`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not name %s", err, part)
		}
	}
}
