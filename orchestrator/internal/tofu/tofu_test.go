package tofu_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/tofu"
	"github.com/google/go-cmp/cmp"
)

const configuration = `
variable "word" {
  default = "a"
}
resource "terraform_data" "one" {
  triggers_replace = var.word
}
resource "terraform_data" "many" {
  for_each = toset(["x", "y"])
  input    = each.key
}
output "plain" {
  value = terraform_data.one.id
}
output "secret" {
  value     = "canary"
  sensitive = true
}
`

// module returns a module over a fresh directory with the configuration.
func module(t *testing.T, text string) tofu.Module {
	t.Helper()
	install, err := tofu.Locate(t.Context(), "")
	if err != nil {
		t.Fatalf("%v (make setup installs it; run through make, or put its cache on PATH)", err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return tofu.Module{Install: install, Workspace: orchestrator.Workspace{Name: "w", Dir: dir}, TempDir: t.TempDir()}
}

// run executes a command to its end and returns its journal.
func run(t *testing.T, c tofu.Command) (tofu.Journal, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), c.Argv[0], c.Argv[1:]...)
	cmd.Env, cmd.Dir = c.Env, c.Dir
	out, err := cmd.Output()
	j, jerr := tofu.ReadJournal(strings.NewReader(string(out)))
	if jerr != nil {
		t.Fatal(jerr)
	}
	return j, err
}

func apply(t *testing.T, m tofu.Module) tofu.Plan {
	t.Helper()
	planFile := filepath.Join(t.TempDir(), "plan")
	if j, err := run(t, m.Plan(planFile)); err != nil {
		t.Fatalf("plan: %v: %s", err, j.Err())
	}
	plan, err := m.ShowPlan(t.Context(), planFile)
	if err != nil {
		t.Fatal(err)
	}
	if j, err := run(t, m.Apply(planFile)); err != nil {
		t.Fatalf("apply: %v: %s", err, j.Err())
	}
	return plan
}

func TestPlanApplyStateOutputs(t *testing.T) {
	t.Setenv("TF_CLI_ARGS", "-bogus")
	t.Setenv("TF_VAR_word", "leaked")
	m := module(t, configuration)
	if j, err := run(t, m.Init()); err != nil {
		t.Fatalf("init: %v: %s", err, j.Err())
	}
	if err := m.EnsureState(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := apply(t, m)
	want := []orchestrator.Change{
		{Address: `terraform_data.many["x"]`, Action: "create"},
		{Address: `terraform_data.many["y"]`, Action: "create"},
		{Address: "terraform_data.one", Action: "create"},
	}
	if diff := cmp.Diff(want, first.Changes); diff != "" {
		t.Errorf("changes differ (-want +got):\n%s", diff)
	}
	if len(first.Destructive()) != 0 {
		t.Errorf("destructive: %v", first.Destructive())
	}
	state, err := m.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(state) != 3 || state["terraform_data.one"] == "" {
		t.Errorf("state = %v", state)
	}
	out, err := m.Outputs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), `"canary"`) {
		t.Errorf("outputs lack the sensitive value: %s", out)
	}
	if second := apply(t, m); !second.Empty() {
		t.Errorf("a second plan changes %v", second.Changes)
	}

	vars := filepath.Join(t.TempDir(), "v.tfvars")
	if err := os.WriteFile(vars, []byte(`word = "b"`), 0o600); err != nil {
		t.Fatal(err)
	}
	m.Workspace.VarFiles = []string{vars}
	third := apply(t, m)
	if len(third.Destructive()) != 1 || len(third.Creates) != 1 || third.Creates[0].PriorID != state["terraform_data.one"] {
		t.Errorf("replacement: %+v", third)
	}
}

func TestEnsureStateKeepsAnExistingOne(t *testing.T) {
	m := module(t, configuration)
	apply(t, m)
	before, err := os.ReadFile(filepath.Join(m.Workspace.Dir, "terraform.tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.EnsureState(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(filepath.Join(m.Workspace.Dir, "terraform.tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		t.Error("the state changed")
	}
}

func TestPlanOfBrokenConfigurationNamesThePlace(t *testing.T) {
	m := module(t, "resource \"terraform_data\" \"a\" {\n  input = var.nope\n}\n")
	j, err := run(t, m.Plan(filepath.Join(t.TempDir(), "plan")))
	if err == nil {
		t.Fatal("planned")
	}
	if got := j.Err(); !strings.Contains(got, "main.tf:2") || !strings.Contains(got, "undeclared") {
		t.Errorf("error %q does not name the place", got)
	}
}

func TestPlanWithoutInitSaysSo(t *testing.T) {
	m := module(t, "module \"m\" {\n  source = \"./m\"\n}\n")
	if err := os.Mkdir(filepath.Join(m.Workspace.Dir, "m"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(m.Workspace.Dir, "m", "m.tf"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := run(t, m.Plan(filepath.Join(t.TempDir(), "plan")))
	if err == nil || !j.NeedsInit() {
		t.Errorf("error %v, journal %q: want one that asks for init", err, j.Err())
	}
}

func TestStalePlanIsRecognized(t *testing.T) {
	m := module(t, configuration)
	planFile := filepath.Join(t.TempDir(), "plan")
	if j, err := run(t, m.Plan(planFile)); err != nil {
		t.Fatalf("plan: %v: %s", err, j.Err())
	}
	apply(t, m)
	j, err := run(t, m.Apply(planFile))
	if err == nil || !j.Stale() {
		t.Errorf("error %v, journal %q: want a stale plan", err, j.Err())
	}
}

func TestWorkspaceOfTheModuleIsUsed(t *testing.T) {
	m := module(t, configuration)
	m.Workspace.TofuWorkspace = "blue"
	if j, err := run(t, m.Init()); err != nil {
		t.Fatalf("init: %v: %s", err, j.Err())
	}
	if err := m.EnsureState(t.Context()); err != nil {
		t.Fatal(err)
	}
	apply(t, m)
	if _, err := os.Stat(filepath.Join(m.Workspace.Dir, "terraform.tfstate.d", "blue", "terraform.tfstate")); err != nil {
		t.Error(err)
	}
}

func TestLocateMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := tofu.Locate(context.Background(), "")
	if !errors.Is(err, orchestrator.ErrFailed) || !strings.Contains(err.Error(), "tofu is missing") {
		t.Errorf("error = %v", err)
	}
}

func TestCheckDir(t *testing.T) {
	empty := t.TempDir()
	good := t.TempDir()
	file := filepath.Join(good, "main.tf")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := tofu.CheckDir(good); err != nil {
		t.Error(err)
	}
	for name, dir := range map[string]string{"missing": filepath.Join(empty, "x"), "a file": file, "no configuration": empty} {
		if err := tofu.CheckDir(dir); !errors.Is(err, orchestrator.ErrInvalid) {
			t.Errorf("%s: error %v, want invalid", name, err)
		}
	}
	// Nobody writes to it, so that opening it would never end.
	pipe := filepath.Join(empty, "main.tf")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := tofu.CheckDir(empty); err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("error %v, want what to do about a pipe", err)
	}
	for name, err := range map[string]error{"directory": tofu.CheckDir(empty), "file": tofu.CheckFile("--var-file", pipe)} {
		if !errors.Is(err, orchestrator.ErrInvalid) || !strings.Contains(err.Error(), pipe+": not a regular file but a named pipe") {
			t.Errorf("%s: error %v, want a refusal that names the pipe", name, err)
		}
	}
}

// What a block imports or moves is a change, though it makes nothing: without an
// apply it would never happen.
func TestImportAndMovedBlocksAreChanges(t *testing.T) {
	m := module(t, `
resource "terraform_data" "old" {}
`)
	apply(t, m)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(m.Workspace.Dir, "main.tf"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`
resource "terraform_data" "new" {}
moved {
  from = terraform_data.old
  to   = terraform_data.new
}
`)
	moved := apply(t, m)
	if diff := cmp.Diff([]orchestrator.Change{{Address: "terraform_data.new", Action: "move"}}, moved.Changes); diff != "" || moved.Empty() {
		t.Errorf("a moved block changes (-want +got):\n%s", diff)
	}
	write(`
resource "terraform_data" "new" {}
resource "terraform_data" "found" {}
import {
  to = terraform_data.found
  id = "i-1"
}
`)
	imported := apply(t, m)
	if diff := cmp.Diff([]orchestrator.Change{{Address: "terraform_data.found", Action: "import"}}, imported.Changes); diff != "" || imported.Empty() {
		t.Errorf("an import block changes (-want +got):\n%s", diff)
	}
	state, err := m.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if state["terraform_data.found"] != "i-1" || len(state) != 2 {
		t.Errorf("state %v", state)
	}
	if again := apply(t, m); !again.Empty() {
		t.Errorf("a second plan changes %v", again.Changes)
	}
}

// The empty state of [tofu.Module.EnsureState] is none that anything was applied to.
func TestAppliedTellsAnEmptyStateFromOneThatWasEmptied(t *testing.T) {
	m := module(t, configuration)
	want := func(when string, want bool) {
		t.Helper()
		if got, err := m.Applied(t.Context()); err != nil || got != want {
			t.Errorf("%s: applied %v (%v), want %v", when, got, err, want)
		}
	}
	want("without a state", false)
	if err := m.EnsureState(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("with an empty one", false)
	apply(t, m)
	want("after an apply", true)
	if err := os.WriteFile(filepath.Join(m.Workspace.Dir, "main.tf"), []byte("locals {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	apply(t, m)
	want("after everything was destroyed", true)
}

// Backend settings may be access keys: no command line shows them, and tofu gets
// them as they are.
func TestBackendSettingsStandInNoCommandLine(t *testing.T) {
	m := module(t, "terraform {\n  backend \"local\" {}\n}\n"+configuration)
	path := `it's ${x} "a\b" $(y).tfstate`
	m.Workspace.BackendConfig = []string{"path=" + path}
	c := m.Init()
	if strings.Contains(strings.Join(c.Argv, " "), "path=") {
		t.Errorf("argv %q shows the setting", c.Argv)
	}
	if j, err := run(t, c); err != nil {
		t.Fatalf("init: %v: %s", err, j.Err())
	}
	apply(t, m)
	if _, err := os.Stat(filepath.Join(m.Workspace.Dir, path)); err != nil {
		t.Errorf("the state is not where the setting says: %v", err)
	}
}

func TestUnlockOfWhatIsNoLock(t *testing.T) {
	m := module(t, configuration)
	if err := m.Unlock(t.Context(), "0b5-7"); err == nil || !strings.HasPrefix(err.Error(), "the state of workspace w is not locked") {
		t.Errorf("unlock of what is not locked: %v", err)
	}
	for id, code := range map[string]orchestrator.Code{
		"": orchestrator.CodeInvalid, "-force": orchestrator.CodeInvalid, "0b5-7": orchestrator.CodeFailed,
	} {
		err := m.Unlock(t.Context(), id)
		f := orchestrator.FailureOf(err)
		if f == nil || f.Code != code || !strings.Contains(f.Hint, "exocomp workspace unlock w LOCK_ID") || strings.Contains(f.Message, "\x1b") {
			t.Errorf("unlock %q: %+v, want %s, what to type next and no colours", id, f, code)
		}
	}
}
