package orchestrator

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// ApprovalPolicy says which plans of a workspace wait for a person.
type ApprovalPolicy string

const (
	// ApprovalNever applies every plan.
	ApprovalNever ApprovalPolicy = "never"
	// ApprovalDestructive parks a plan that deletes or replaces; the default.
	ApprovalDestructive ApprovalPolicy = "destructive"
	// ApprovalAlways parks every plan.
	ApprovalAlways ApprovalPolicy = "always"
)

// Workspace is a named OpenTofu root module that the daemon may apply.
type Workspace struct {
	Name          string         `json:"name"`
	Dir           string         `json:"dir"`                      // absolute path of the root module; empty: see HandedOver
	TofuWorkspace string         `json:"tofu_workspace,omitempty"` // the module's own workspace; empty: the default one
	VarFiles      []string       `json:"var_files,omitempty"`      // absolute paths, passed in this order
	BackendConfig []string       `json:"backend_config,omitempty"` // absolute paths or `key=value`, for `tofu init`
	CLIConfig     string         `json:"cli_config,omitempty"`     // absolute path given as TF_CLI_CONFIG_FILE, or empty
	Approval      ApprovalPolicy `json:"approval"`
	Watch         bool           `json:"watch,omitempty"` // applied when its configuration changes
	CreatedAt     time.Time      `json:"created_at,omitzero"`
	UpdatedAt     time.Time      `json:"updated_at,omitzero"`

	Lost []LostCreate `json:"lost,omitempty"` // creates that the state may lack; while any stands, applies are refused
}

// LostCreate is a resource that an interrupted apply may have made without
// saving it to the state. It belongs to the workspace and bars every later
// apply until its address is in the state or a person accepts the loss.
type LostCreate struct {
	Address string    `json:"address"`            // the resource's address
	ID      string    `json:"id,omitempty"`       // the provider's id where the journal names one, for `tofu import`
	PriorID string    `json:"prior_id,omitempty"` // of the object that it was to replace: while the state holds that one, it lacks this one
	Job     JobID     `json:"job,omitempty"`      // the attempt whose journal raised the suspicion
	Since   time.Time `json:"since,omitzero"`
}

// HandedOver reports whether the workspace has no root module: its hosts are
// handed over by an `exocomp_provision`.
func (w Workspace) HandedOver() bool { return w.Dir == "" }

// RefuseHandedOver refuses to apply a workspace that has no root module.
func (w Workspace) RefuseHandedOver() error {
	if !w.HandedOver() {
		return nil
	}
	return Errorf(CodeRefused, "workspace %s has no root module here: an exocomp_provision hands its hosts over", w.Name).
		WithHint("run tofu apply where that resource is")
}

// FoundAs reports whether the object of that id, which the state holds under
// the create's address, may be what the create made. An id may be empty.
func (l LostCreate) FoundAs(id string) bool {
	if l.PriorID != "" && id == l.PriorID {
		return false
	}
	return l.ID == "" || id == "" || id == l.ID
}

// TofuCommand returns a command for sh(1) that runs tofu in the workspace as
// the daemon would, wherever it is typed.
func (w Workspace) TofuCommand(args ...string) string {
	var words []string
	if w.TofuWorkspace != "" {
		words = append(words, "TF_WORKSPACE="+ShellQuote(w.TofuWorkspace))
	}
	if w.CLIConfig != "" {
		words = append(words, "TF_CLI_CONFIG_FILE="+ShellQuote(w.CLIConfig))
	}
	words = append(words, "tofu", ShellQuote("-chdir="+w.Dir), ShellCommand(args...))
	return strings.Join(words, " ")
}

// ImportCommand returns the command for sh(1) that brings lost creates into the
// state; ID stands in it where a person must look the id up. A state that still
// holds the object of a replacement must forget it first.
func (w Workspace) ImportCommand(lost ...LostCreate) string {
	var commands []string
	for _, l := range lost {
		if l.PriorID != "" {
			commands = append(commands, w.TofuCommand("state", "rm", l.Address))
		}
		args := []string{"import"}
		for _, f := range w.VarFiles {
			args = append(args, "-var-file="+f)
		}
		id := l.ID
		if id == "" {
			id = "ID"
		}
		commands = append(commands, w.TofuCommand(append(args, l.Address, id)...))
	}
	return strings.Join(commands, "; ")
}

// SameState reports whether two workspaces keep their state in one place: they
// are one root module, under its same workspace, with the same backend.
func (w Workspace) SameState(other Workspace) bool {
	return filepath.Clean(w.Dir) == filepath.Clean(other.Dir) && w.SelectedWorkspace() == other.SelectedWorkspace() &&
		slices.Equal(w.BackendConfig, other.BackendConfig)
}

// SelectedWorkspace returns the module's own workspace by its name, also where
// it is the default one.
func (w Workspace) SelectedWorkspace() string {
	if w.TofuWorkspace == "" {
		return "default"
	}
	return w.TofuWorkspace
}

// MaxWorkspaceName bounds a workspace's name, in bytes.
const MaxWorkspaceName = 63

// InventoryPrefix stands before a workspace's name in its inventory's name.
const InventoryPrefix = "tf:"

// InventoryName returns the name of workspace's standing inventory.
func InventoryName(workspace string) string { return InventoryPrefix + workspace }

// WorkspaceOfInventory returns the workspace that an inventory name stands
// for: the inverse of [InventoryName].
func WorkspaceOfInventory(name string) (string, bool) {
	return strings.CutPrefix(name, InventoryPrefix)
}

// ValidateInventoryName refuses what names no standing inventory: neither
// `tf:<workspace>` nor a workspace. The error is [CodeInvalid].
func ValidateInventoryName(name string) error {
	workspace, ok := WorkspaceOfInventory(name)
	if !ok {
		workspace = name
	}
	if err := ValidateWorkspaceName(workspace); err != nil {
		return Errorf(CodeInvalid, "%q is no inventory: %s", name, FailureOf(err).Message).
			WithHint("name one as tf:WORKSPACE; list them: exocomp inventory list")
	}
	return nil
}

var workspaceName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

// ReservedNames may name neither a workspace nor, in an inventory, a host:
// Ansible or exocomp gives each a meaning of its own.
var ReservedNames = []string{"all", "ungrouped", "tf", "localhost"}

// ValidateWorkspaceName refuses a name that could not stand as a group in an
// inventory. The error is [CodeInvalid].
func ValidateWorkspaceName(name string) error {
	hint := "use letters, digits, _ and -, starting with a letter, at most 63"
	switch {
	case name == "":
		return Errorf(CodeInvalid, "the workspace name is empty").WithHint("%s", hint)
	case len(name) > MaxWorkspaceName:
		return Errorf(CodeInvalid, "workspace name %.20q… is %d bytes long", name, len(name)).WithHint("%s", hint)
	case !workspaceName.MatchString(name):
		return Errorf(CodeInvalid, "workspace name %q is not allowed", name).WithHint("%s", hint)
	}
	for _, r := range ReservedNames {
		if strings.EqualFold(name, r) {
			return Errorf(CodeInvalid, "workspace name %q is reserved", name).
				WithHint("choose another: Ansible or exocomp gives %q a meaning of its own", r)
		}
	}
	return nil
}

// Validate reports every mistake in w together, as one [CodeInvalid] error.
func (w Workspace) Validate() error {
	var m Mistakes
	m.Add(ValidateWorkspaceName(w.Name))
	m.absolute("directory", w.Dir)
	for _, f := range w.VarFiles {
		m.absolute("var file", f)
	}
	for _, f := range w.BackendConfig {
		if !strings.Contains(f, "=") {
			m.absolute("backend config", f)
		}
	}
	if w.CLIConfig != "" {
		m.absolute("CLI config", w.CLIConfig)
	}
	if w.TofuWorkspace != "" && !workspaceName.MatchString(w.TofuWorkspace) {
		m.Addf("tofu workspace %q is not allowed", w.TofuWorkspace)
	}
	switch w.Approval {
	case ApprovalNever, ApprovalDestructive, ApprovalAlways:
	default:
		m.Addf("approval policy %q is unknown: use never, destructive or always", w.Approval)
	}
	return m.Err()
}

// absolute records a mistake where path is not absolute and clean, begins with
// a dash once it is an argument, or holds a NUL.
func (m *Mistakes) absolute(what, path string) {
	switch {
	case path == "":
		m.Addf("the %s is empty", what)
	case strings.ContainsRune(path, 0):
		m.Addf("the %s %q holds a NUL byte", what, path)
	case !filepath.IsAbs(path):
		m.Addf("the %s %q is not an absolute path", what, path)
	}
}
