package daemon_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/daemon"
)

func environment(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestDefaultsFollowTheUser(t *testing.T) {
	system, err := daemon.Defaults(0, "root", environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	if system.DataDir != "/var/lib/exocomp" || system.Socket() != "/run/exocomp/exocomp.sock" {
		t.Errorf("root: %+v", system)
	}
	person, err := daemon.Defaults(1000, "ann", environment(map[string]string{
		"HOME": "/home/ann", "XDG_RUNTIME_DIR": "/run/user/1000",
	}))
	if err != nil {
		t.Fatal(err)
	}
	if person.DataDir != "/home/ann/.local/share/exocomp" || person.Socket() != "/run/user/1000/exocomp/exocomp.sock" {
		t.Errorf("ann: %+v", person)
	}
	bare, err := daemon.Defaults(1000, "ann", environment(map[string]string{"HOME": "/home/ann"}))
	if err != nil {
		t.Fatal(err)
	}
	if bare.Socket() != "/home/ann/.local/share/exocomp/run/exocomp.sock" {
		t.Errorf("ann without XDG_RUNTIME_DIR: %+v", bare)
	}
	if _, err := daemon.Defaults(1000, "ann", environment(nil)); !errors.Is(err, orchestrator.ErrInvalid) {
		t.Errorf("without HOME: error %v, want invalid", err)
	}
}

func TestLoad(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string // parts of the error; none: it loads
	}{
		{"whole", "data_dir = \"/d\"\nruntime_dir = \"/r\"\nworkers = 2\nautomation_user = \"ops\"\nlog_level = \"debug\"\ntofu {\n path = \"/t\"\n}\nansible {\n path = \"/a\"\n}\n", nil},
		{"empty", "", nil},
		{"unknown key", "workers = 2\nwrokers = 3\n", []string{"exocomp.hcl:2,1", "wrokers"}},
		{"unknown key in a block", "tofu {\n  paht = \"x\"\n}\n", []string{"exocomp.hcl:2,3", "paht"}},
		{"unknown block", "tfou {\n}\n", []string{"exocomp.hcl:1,1", "tfou"}},
		{"wrong type", "workers = \"many\"\n", []string{"exocomp.hcl:1,12", "number"}},
		{"broken", "workers = = 2\n", []string{"exocomp.hcl:1,11"}},
		{"all mistakes", "data_dir = \"d\"\nworkers = 0\nautomation_user = \"root\"\n", []string{"data_dir", "workers", "automation_user"}},
		{"level", "log_level = \"loud\"\n", []string{"loud", "debug"}},
	}
	base, err := daemon.Defaults(0, "root", environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "exocomp.hcl")
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := daemon.Load(base, path)
			if len(tt.want) == 0 {
				if err != nil {
					t.Fatal(err)
				}
				if tt.name == "whole" && (c.DataDir != "/d" || c.RuntimeDir != "/r" || c.Workers != 2 || c.AutomationUser != "ops" || c.TofuPath != "/t" || c.AnsiblePath != "/a") {
					t.Errorf("loaded %+v", c)
				}
				return
			}
			if !errors.Is(err, orchestrator.ErrInvalid) {
				t.Fatalf("error %v, want invalid", err)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
		})
	}
}

func TestSettingsAreReadFromAFileOnly(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	base, err := daemon.Defaults(0, "root", environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := daemon.Load(base, pipe); !errors.Is(err, orchestrator.ErrInvalid) || !strings.Contains(err.Error(), pipe+": not a regular file") {
		t.Errorf("a named pipe: %v, want a refusal that names it", err)
	}
	if _, err := daemon.Load(base, os.DevNull); err != nil {
		t.Errorf("no settings: %v", err)
	}
}
