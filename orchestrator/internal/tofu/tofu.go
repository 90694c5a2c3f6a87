// Package tofu drives OpenTofu: where the executable is, which arguments and
// environment a command gets, and how its plan, its `-json` journal, its state
// and its outputs are read. It starts only short children of its own that
// print secrets and therefore speak over pipes; what changes anything (init,
// plan, apply) is described here and executed by a supervisor.
package tofu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/child"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

// Install is a usable OpenTofu.
type Install struct {
	Path    string // absolute
	Version string // such as 1.12.6
}

// Locate finds the executable: configured is a path or a name, empty means
// `tofu` on PATH. The error is [orchestrator.CodeFailed] and says where it
// looked.
func Locate(ctx context.Context, configured string) (Install, error) {
	return locate(ctx, configured, child.VersionLimit)
}

func locate(ctx context.Context, configured string, limit time.Duration) (Install, error) {
	name := configured
	if name == "" {
		name = "tofu"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		e := orchestrator.Errorf(orchestrator.CodeFailed, "tofu is missing: no executable %q on the daemon's PATH %q", name, os.Getenv("PATH"))
		if filepath.IsAbs(name) {
			e = orchestrator.Errorf(orchestrator.CodeFailed, "tofu is missing: %q is not an executable file", name)
		}
		return Install{}, e.WithHint("install OpenTofu, or name it in exocomp.hcl: tofu { path = \"/…/tofu\" }; then: exocomp doctor")
	}
	if path, err = filepath.Abs(path); err != nil {
		return Install{}, orchestrator.Errorf(orchestrator.CodeInternal, "locate tofu: %w", err)
	}
	out, err := ask(ctx, child.Spec{
		Argv:  []string{path, "version", "-json"},
		Env:   baseEnv(os.TempDir()),
		Dir:   "/",
		Limit: limit,
	})
	if err != nil {
		return Install{}, orchestrator.Errorf(orchestrator.CodeFailed, "ask %s for its version: %w", path, err).
			WithHint("try it as the daemon's user: %s; then: exocomp doctor", orchestrator.ShellCommand(path, "version"))
	}
	var v struct {
		Version string `json:"terraform_version"`
	}
	if err := json.Unmarshal(out, &v); err != nil || v.Version == "" {
		return Install{}, orchestrator.Errorf(orchestrator.CodeFailed, "%s does not answer `version -json` as OpenTofu does: %.80q", path, out)
	}
	return Install{Path: path, Version: v.Version}, nil
}

// Module is a workspace as its commands need it.
type Module struct {
	Install   Install
	Workspace orchestrator.Workspace
	TempDir   string            // TMPDIR of the children, private
	Variables map[string]string // given as TF_VAR_<name>
	Job       orchestrator.JobID
	Daemon    []string // environment by which a provider finds the daemon
}

// Command is what a supervisor executes.
type Command struct {
	Argv []string
	Env  []string
	Dir  string
}

// Init returns `tofu init`; it streams its journal. The backend's settings may
// be access keys, and everybody may read a command line: they go by the
// environment, from which tofu takes arguments as a shell would.
func (m Module) Init() Command {
	c := m.command("init", "-input=false", "-json")
	if len(m.Workspace.BackendConfig) > 0 {
		args := make([]string, len(m.Workspace.BackendConfig))
		for i, b := range m.Workspace.BackendConfig {
			args[i] = "-backend-config=" + b
		}
		c.Env = append(c.Env, "TF_CLI_ARGS_init="+orchestrator.ShellCommand(args...))
	}
	return c
}

// Plan returns `tofu plan` that writes planFile and streams its journal.
func (m Module) Plan(planFile string) Command {
	args := []string{"plan", "-input=false", "-json", "-out=" + planFile}
	for _, f := range m.Workspace.VarFiles {
		args = append(args, "-var-file="+f)
	}
	return m.command(args...)
}

// Apply returns `tofu apply` of exactly planFile; it streams its journal.
func (m Module) Apply(planFile string) Command {
	return m.command("apply", "-input=false", "-json", "-auto-approve", planFile)
}

func (m Module) command(args ...string) Command {
	return Command{
		Argv: append([]string{m.Install.Path}, args...),
		Env:  m.env(),
		Dir:  m.Workspace.Dir,
	}
}

// env builds a child's environment from nothing: what the daemon was started
// with (TF_LOG, TF_CLI_ARGS, TF_CLI_CONFIG_FILE, …) never reaches it.
func (m Module) env() []string {
	env := baseEnv(m.TempDir)
	if m.Workspace.TofuWorkspace != "" {
		env = append(env, "TF_WORKSPACE="+m.Workspace.TofuWorkspace)
	}
	if m.Workspace.CLIConfig != "" {
		env = append(env, "TF_CLI_CONFIG_FILE="+m.Workspace.CLIConfig)
	}
	if m.Job != "" {
		env = append(env, "EXOCOMP_JOB="+string(m.Job))
	}
	env = append(env, m.Daemon...)
	for name, value := range m.Variables {
		env = append(env, "TF_VAR_"+name+"="+value)
	}
	return env
}

// passed are the variables of the daemon's own environment that a tofu child
// keeps: who and where it is, and how it reaches its registries.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
}

func baseEnv(temp string) []string {
	env := []string{
		"LANG=C.UTF-8",
		"TMPDIR=" + temp,
		"TF_IN_AUTOMATION=1",
		"TF_INPUT=0",
		"CHECKPOINT_DISABLE=1",
	}
	for _, name := range passed {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// CheckDir reports, as the user this process runs as, whether dir can be a
// root module whose state can be written. The error is
// [orchestrator.CodeInvalid].
func CheckDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return orchestrator.Errorf(orchestrator.CodeInvalid, "no such directory on the daemon's host: %s", dir).
			WithHint("give the directory of an OpenTofu root module")
	case err != nil:
		return orchestrator.Errorf(orchestrator.CodeInvalid, "the daemon cannot read %s: %w", dir, err).
			WithHint("give the daemon's user (uid %d) read access", os.Getuid())
	case !info.IsDir():
		return orchestrator.Errorf(orchestrator.CodeInvalid, "%s is not a directory", dir).
			WithHint("give the directory of an OpenTofu root module")
	}
	files, err := ConfigurationFiles(dir)
	if err != nil {
		return orchestrator.Errorf(orchestrator.CodeInvalid, "the daemon cannot read %s: %w", dir, err).
			WithHint("give the daemon's user (uid %d) read access", os.Getuid())
	}
	if len(files) == 0 {
		return orchestrator.Errorf(orchestrator.CodeInvalid, "%s holds no OpenTofu configuration (*.tf, *.tofu)", dir).
			WithHint("give the directory of an OpenTofu root module")
	}
	for _, f := range files {
		err := readable(f)
		switch {
		case errors.Is(err, durable.ErrNotRegular):
			return orchestrator.Errorf(orchestrator.CodeInvalid, "the daemon cannot read %s: %w", f, err).
				WithHint("move it away: tofu reads every *.tf and *.tofu there")
		case err != nil:
			return orchestrator.Errorf(orchestrator.CodeInvalid, "the daemon cannot read %s: %w", f, err).
				WithHint("give the daemon's user (uid %d) read access", os.Getuid())
		}
	}
	probe, err := os.CreateTemp(dir, ".exocomp-probe-*")
	if err != nil {
		return orchestrator.Errorf(orchestrator.CodeInvalid, "the daemon cannot write %s, where tofu keeps .terraform and a local state: %w", dir, err).
			WithHint("give the daemon's user (uid %d) write access", os.Getuid())
	}
	_ = probe.Close()
	return os.Remove(probe.Name())
}

// CheckFile reports whether this process can read the file that flag names.
func CheckFile(flag, path string) error {
	if err := readable(path); err != nil {
		return orchestrator.Errorf(orchestrator.CodeInvalid, "%s: the daemon cannot read %s: %w", flag, path, err).
			WithHint("give the path of a file on the daemon's host that its user (uid %d) can read", os.Getuid())
	}
	return nil
}

func readable(path string) error {
	f, err := durable.OpenRegular(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// ConfigurationFiles lists the configuration files of the root module in dir,
// sorted.
func ConfigurationFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list configuration: %w", err)
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && isConfiguration(e.Name()) {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, nil
}

func isConfiguration(name string) bool {
	for _, suffix := range []string{".tf", ".tofu", ".tf.json", ".tofu.json"} {
		if strings.HasSuffix(name, suffix) && !strings.HasPrefix(name, ".") {
			return true
		}
	}
	return false
}
