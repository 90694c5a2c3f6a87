package cli

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc/rpctest"
)

// Adding a workspace again changes what is given then, and nothing else; an
// empty value clears.
func TestAddingAWorkspaceAgainKeepsItsOtherSettings(t *testing.T) {
	d := rpctest.Serve(t, rpctest.NewService())
	dir := t.TempDir()
	want := orchestrator.Workspace{
		Name: "edge", Dir: dir, TofuWorkspace: "blue", VarFiles: []string{"/a.tfvars", "/b.tfvars"},
		BackendConfig: []string{"/b.hcl", "key=v"}, CLIConfig: "/tofurc", Approval: orchestrator.ApprovalAlways,
	}
	for _, step := range []struct {
		name   string
		flags  []string
		change func()
	}{
		{"the first", []string{
			"--tofu-workspace", "blue", "--var-file", "/a.tfvars", "--var-file", "/b.tfvars",
			"--backend-config", "/b.hcl", "--backend-config", "key=v", "--cli-config", "/tofurc", "--approval", "always",
		}, func() {}},
		{"nothing", nil, func() {}},
		{"approval", []string{"--approval", "never"}, func() { want.Approval = orchestrator.ApprovalNever }},
		{"var files", []string{"--var-file", "/c.tfvars"}, func() { want.VarFiles = []string{"/c.tfvars"} }},
		{"no var files", []string{"--var-file", ""}, func() { want.VarFiles = nil }},
		{"backend", []string{"--backend-config", "key=w"}, func() { want.BackendConfig = []string{"key=w"} }},
		{"no CLI configuration", []string{"--cli-config", ""}, func() { want.CLIConfig = "" }},
		{"no tofu workspace", []string{"--tofu-workspace", ""}, func() { want.TofuWorkspace = "" }},
	} {
		if o := run(t, d, append([]string{"workspace", "add", "edge", dir}, step.flags...)...); o.code != exitDone {
			t.Fatalf("%s: %+v", step.name, o)
		}
		step.change()
		got, err := d.Dial().GetWorkspace(t.Context(), "edge")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(got, "CreatedAt", "UpdatedAt"), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("after adding it with %s (-want +got):\n%s", step.name, diff)
		}
	}
	other := filepath.Join(dir, "sub")
	if o := run(t, d, "workspace", "add", "edge", other); o.code != exitDone {
		t.Fatalf("%+v", o)
	}
	if got, err := d.Dial().GetWorkspace(t.Context(), "edge"); err != nil || got.Dir != other || got.BackendConfig[0] != "key=w" {
		t.Errorf("after moving it: %+v, %v", got, err)
	}
}
