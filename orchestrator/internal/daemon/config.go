package daemon

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclparse"
)

// Config is the daemon's settings. Each has a default; exocomp.hcl and flags of
// `exocomp serve` override them.
type Config struct {
	DataDir        string // the ledger, keys, pins, inventories, logs
	RuntimeDir     string // the socket, tokens and the jobs' work directories
	Workers        int    // jobs that run at once
	AutomationUser string // created on every onboarded host
	TofuPath       string // empty: `tofu` on PATH
	AnsiblePath    string // empty: `ansible-playbook` on PATH
	LogLevel       slog.Level
	Rules          []PlaybookRule
	File           string // where the settings were read, or empty
}

// Socket returns where the daemon listens.
func (c Config) Socket() string { return filepath.Join(c.RuntimeDir, rpc.SocketName) }

// Ledger returns where the ledger lies.
func (c Config) Ledger() string { return filepath.Join(c.DataDir, "ledger.db") }

// file is the form of exocomp.hcl.
type file struct {
	DataDir        *string  `hcl:"data_dir"`
	RuntimeDir     *string  `hcl:"runtime_dir"`
	Workers        *int     `hcl:"workers"`
	AutomationUser *string  `hcl:"automation_user"`
	LogLevel       *string  `hcl:"log_level"`
	Tofu           *program `hcl:"tofu,block"`
	Ansible        *program `hcl:"ansible,block"`
	Playbooks      []rule   `hcl:"playbook,block"`
}

type program struct {
	Path *string `hcl:"path"`
}

const (
	maxWorkers = 64
	maxConfig  = 1 << 20 // bytes of exocomp.hcl
)

// Defaults returns the settings of a daemon that runs as uid: the system's
// directories for root and for the user `exocomp`, those that a client looks at
// for anybody else.
func Defaults(uid int, user string, env func(string) string) (Config, error) {
	c := Config{
		DataDir:        "/var/lib/exocomp",
		RuntimeDir:     "/run/exocomp",
		Workers:        jobs.DefaultWorkers,
		AutomationUser: "exocomp",
		LogLevel:       slog.LevelInfo,
	}
	if uid == 0 || user == "exocomp" {
		return c, nil
	}
	if c.DataDir = rpc.UserDataDir(env); c.DataDir == "" {
		return Config{}, orchestrator.Errorf(orchestrator.CodeInvalid, "neither XDG_DATA_HOME nor HOME is set").
			WithHint("set one of them, or data_dir in exocomp.hcl")
	}
	c.RuntimeDir = rpc.UserRuntimeDirs(env)[0]
	return c, nil
}

// ConfigFile returns the settings file that serve reads: named, else
// EXOCOMP_CONFIG, else the user's, else the system's. Empty means that there is
// none; a file that was named and is missing is found missing when it is read.
func ConfigFile(named string, env func(string) string) string {
	if named != "" {
		return named
	}
	if f := env("EXOCOMP_CONFIG"); f != "" {
		return f
	}
	home := env("XDG_CONFIG_HOME")
	if home == "" && env("HOME") != "" {
		home = filepath.Join(env("HOME"), ".config")
	}
	for _, dir := range []string{home, "/etc"} {
		f := filepath.Join(dir, "exocomp", "exocomp.hcl")
		if _, err := os.Stat(f); err == nil && dir != "" {
			return f
		}
	}
	return ""
}

// Load returns defaults overridden by the settings file at path. Unknown keys
// and wrong types are refused with line and column, all of them together.
func Load(defaults Config, path string) (Config, error) {
	src, err := durable.ReadRegular(path, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return Config{}, orchestrator.Errorf(orchestrator.CodeInvalid, "no such configuration file: %s", path).
			WithHint("name another with --config, or leave it away: every setting has a default")
	}
	if err != nil {
		return Config{}, orchestrator.Errorf(orchestrator.CodeInvalid, "read configuration: %w", err).
			WithHint("name another with --config")
	}
	parsed, diags := hclparse.NewParser().ParseHCL(src, path)
	if diags.HasErrors() {
		return Config{}, refused(diags)
	}
	var f file
	if diags := gohcl.DecodeBody(parsed.Body, nil, &f); diags.HasErrors() {
		return Config{}, refused(diags)
	}
	c := defaults
	c.File = path
	f.override(&c)
	if f.LogLevel != nil {
		if err := c.LogLevel.UnmarshalText([]byte(*f.LogLevel)); err != nil {
			return Config{}, orchestrator.Errorf(orchestrator.CodeInvalid, "%s: log_level %q is unknown", path, *f.LogLevel).
				WithHint("use debug, info, warn or error")
		}
	}
	return c, c.Validate()
}

func (f file) override(c *Config) {
	set := func(to *string, from *string) {
		if from != nil {
			*to = *from
		}
	}
	set(&c.DataDir, f.DataDir)
	set(&c.RuntimeDir, f.RuntimeDir)
	set(&c.AutomationUser, f.AutomationUser)
	if f.Workers != nil {
		c.Workers = *f.Workers
	}
	if f.Tofu != nil {
		set(&c.TofuPath, f.Tofu.Path)
	}
	if f.Ansible != nil {
		set(&c.AnsiblePath, f.Ansible.Path)
	}
	for _, r := range f.Playbooks {
		c.Rules = append(c.Rules, PlaybookRule{Path: r.Path, Egress: r.Egress, SSHIdentities: r.SSHIdentity})
	}
}

// userName is what useradd(8) takes as a portable name.
var userName = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)

// Validate reports every mistake in c together.
func (c Config) Validate() error {
	var m orchestrator.Mistakes
	for _, d := range []struct{ key, path string }{{"data_dir", c.DataDir}, {"runtime_dir", c.RuntimeDir}} {
		if !filepath.IsAbs(d.path) {
			m.Addf("%s %q is not an absolute path", d.key, d.path)
		}
	}
	if c.Workers < 1 || c.Workers > maxWorkers {
		m.Addf("workers %d is not between 1 and %d", c.Workers, maxWorkers)
	}
	if !userName.MatchString(c.AutomationUser) || c.AutomationUser == "root" {
		m.Addf("automation_user %q is not the name of an ordinary user", c.AutomationUser)
	}
	m.Add(validateRules(c.Rules))
	if err := m.Err(); err != nil {
		if c.File != "" {
			return orchestrator.Errorf(orchestrator.CodeInvalid, "%s: %w", c.File, err).WithHint(settingsHint)
		}
		return err
	}
	return nil
}

const settingsHint = "list the settings: exocomp serve --help"

// Settings lists what exocomp.hcl may say, for people.
const Settings = `  data_dir        = "/var/lib/exocomp"  # the ledger, keys, pins, inventories, logs
  runtime_dir     = "/run/exocomp"      # the socket, the tokens, the jobs' work directories
  workers         = 4                   # jobs that run at once, 1 to 64
  automation_user = "exocomp"           # created on every onboarded host
  log_level       = "info"              # debug, info, warn or error
  tofu { path = "/usr/bin/tofu" }                # default: tofu on PATH
  ansible { path = "/usr/bin/ansible-playbook" } # default: ansible-playbook on PATH
  playbook "/srv/play/site.yml" {  # what belongs to a playbook run of that path, see docs/playbooks.md
    egress       = [443]                 # TCP ports that it needs besides 22
    ssh_identity = ["/etc/exocomp/key"]  # private keys that it may log in with
  }`

func refused(diags hcl.Diagnostics) error {
	lines := make([]string, 0, len(diags))
	for _, d := range diags {
		lines = append(lines, d.Error())
	}
	return orchestrator.Errorf(orchestrator.CodeInvalid, "%s", strings.Join(lines, "\n")).
		WithHint(settingsHint)
}
