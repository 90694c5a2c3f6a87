package provider

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// site is a root module that a person applies with the built provider, and the
// daemon that it talks to.
type site struct {
	t      testing.TB
	daemon *fakeDaemon
	dir    string
	env    []string
	tool   string // what is run in place of tofu, or empty
	// process has tofu start the built provider, as it does for people and in a
	// benchmark; otherwise the test's own process serves it, in half the time.
	process bool
}

// newSite makes a root module of a configuration, with a playbook in a tree of its
// own, so that nothing else in the module is part of its snapshot.
func newSite(t testing.TB, configuration ...string) *site {
	t.Helper()
	d := newFakeDaemon(t)
	s := &site{t: t, daemon: d, dir: t.TempDir()}
	s.env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+cliConfig, "TF_IN_AUTOMATION=1",
		"EXOCOMP_SOCKET="+d.server.Socket)
	s.write("main.tf", lines(configuration...))
	s.write("daemon.tf", fmt.Sprintf("provider \"exocomp\" {\n  socket = %q\n}\n", d.server.Socket))
	s.write("play/ansible.cfg", "")
	s.write("play/site.yml", "- hosts: all\n")
	return s
}

// edge is a resource of two hosts, with more lines in it.
func edge(more ...string) string {
	return lines(append(append([]string{
		`resource "exocomp_provision" "this" {`,
		`  workspace = "edge"`,
		`  playbook  = abspath("play/site.yml")`,
		`  inventory = { web1 = { ansible_host = "192.0.2.11" } }`,
	}, more...), "}")...)
}

func (s *site) write(name, content string) {
	s.t.Helper()
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) read(name string) string {
	s.t.Helper()
	content, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(content)
}

// command is a tofu with the site's environment, in a process group of its own.
func (s *site) command(args ...string) (*exec.Cmd, *bytes.Buffer) {
	tool := s.tool
	if tool == "" {
		tool = tofuPath
	}
	cmd := exec.CommandContext(s.t.Context(), tool, args...)
	cmd.Dir, cmd.Env = s.dir, s.env
	if t, ok := s.t.(*testing.T); ok && !s.process {
		cmd.Env = append(slices.Clone(s.env), reattached(t))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// The provider would keep the pipes open when tofu is killed.
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

// tofu runs a command and returns its exit code and what it printed, each run of
// white space as one blank: tofu breaks lines and draws frames.
func (s *site) tofu(args ...string) (int, string) {
	s.t.Helper()
	cmd, out := s.command(args...)
	return s.exit(cmd.Run()), flat(out.String())
}

func (s *site) exit(err error) int {
	s.t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	s.t.Fatal(err)
	return 0
}

func flat(s string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("│", "", "╷", "", "╵", "").Replace(s)), " ")
}

// apply expects an apply to succeed, and returns what it printed.
func (s *site) apply(args ...string) string {
	s.t.Helper()
	code, out := s.tofu(append([]string{"apply", "-auto-approve", "-no-color"}, args...)...)
	if code != 0 {
		s.t.Fatalf("apply: exit code %d\n%s", code, out)
	}
	return out
}

// fails expects a command to fail and to say all of what is given, in any order.
func (s *site) fails(args []string, says ...string) string {
	s.t.Helper()
	code, out := s.tofu(append(args, "-no-color")...)
	if code == 0 {
		s.t.Fatalf("%v succeeded\n%s", args, out)
	}
	s.says(out, says...)
	return out
}

func (s *site) says(out string, says ...string) {
	s.t.Helper()
	for _, want := range says {
		if !strings.Contains(out, want) {
			s.t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}

// plan expects the plan to have changes or not, and returns what it printed.
func (s *site) plan(changes bool, args ...string) string {
	s.t.Helper()
	code, out := s.tofu(append([]string{"plan", "-detailed-exitcode", "-no-color"}, args...)...)
	want := 0
	if changes {
		want = 2
	}
	if code != want {
		s.t.Fatalf("plan: exit code %d, want %d\n%s", code, want, out)
	}
	return out
}

// start begins an apply; the caller ends it.
func (s *site) start() (*exec.Cmd, *bytes.Buffer) {
	s.t.Helper()
	cmd, out := s.command("apply", "-auto-approve", "-no-color")
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	return cmd, out
}

var applyArgs = []string{"apply", "-auto-approve"}

// running waits until the daemon has been asked n times and n runs are there.
func (s *site) running(asked int) {
	s.t.Helper()
	s.daemon.until(s.t, fmt.Sprintf("%d requests", asked), func() bool { return len(s.daemon.asked) >= asked })
}

// hold lets runs go on or end.
func (s *site) hold(held bool) { s.daemon.set(func() { s.daemon.held = held }) }

// runs expects how often each run was started or resumed.
func (s *site) runs(want ...int) {
	s.t.Helper()
	if got := fmt.Sprint(s.daemon.times()); got != fmt.Sprint(want) {
		s.t.Errorf("runs were started or resumed %v times, want %v", got, want)
	}
}
