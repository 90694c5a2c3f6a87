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

// What is shown can be typed: paths, addresses and ids are words, whatever is in
// them.
func TestImportCommandRunsAsTheDaemonWould(t *testing.T) {
	w := orchestrator.Workspace{
		Dir: "/srv/it's", TofuWorkspace: "blue", CLIConfig: "/etc/tofurc", VarFiles: []string{"/srv/a b.tfvars"},
		BackendConfig: []string{"key=value"},
	}
	for _, c := range []struct {
		lost []orchestrator.LostCreate
		want string
	}{
		{
			[]orchestrator.LostCreate{{Address: `vm.a["it's"]`, ID: "$(x)"}},
			`TF_WORKSPACE=blue TF_CLI_CONFIG_FILE=/etc/tofurc tofu '-chdir=/srv/it'\''s' ` +
				`import '-var-file=/srv/a b.tfvars' 'vm.a["it'\''s"]' '$(x)'`,
		},
		{
			[]orchestrator.LostCreate{{Address: "vm.b", PriorID: "i-0"}},
			`TF_WORKSPACE=blue TF_CLI_CONFIG_FILE=/etc/tofurc tofu '-chdir=/srv/it'\''s' state rm vm.b; ` +
				`TF_WORKSPACE=blue TF_CLI_CONFIG_FILE=/etc/tofurc tofu '-chdir=/srv/it'\''s' import '-var-file=/srv/a b.tfvars' vm.b ID`,
		},
	} {
		if got := w.ImportCommand(c.lost...); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestLostCreateIsFoundAsAnythingButWhatItReplaces(t *testing.T) {
	for _, c := range []struct {
		id, prior, state string
		want             bool
	}{
		{"", "", "i-1", true},
		{"", "", "", true},
		{"i-1", "", "i-1", true},
		{"i-1", "", "i-2", false},
		{"i-1", "", "", true},
		{"", "i-0", "i-0", false},
		{"", "i-0", "i-1", true},
		{"i-1", "i-0", "i-0", false},
		{"i-1", "i-0", "i-1", true},
	} {
		if got := (orchestrator.LostCreate{ID: c.id, PriorID: c.prior}).FoundAs(c.state); got != c.want {
			t.Errorf("created %q instead of %q, the state holds %q: found %v", c.id, c.prior, c.state, got)
		}
	}
}
