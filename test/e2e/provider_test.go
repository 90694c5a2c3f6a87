package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

// root is a scratch root module with the provider, in which a person would
// type tofu's commands. Nothing is installed: tofu takes the binary that
// `make build` makes.
type root struct {
	s       *site
	dir     string
	program string   // tofu, or terraform
	env     []string // of the program, besides the harness's own
}

// root makes an empty root module.
func (s *site) root(name string) *root {
	s.t.Helper()
	dir := filepath.Join(s.dir, "roots", name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	return &root{s: s, dir: dir, program: "tofu"}
}

// providerConfig writes the CLI configuration by which tofu takes the provider
// that is under test, and returns its path.
func (s *site) providerConfig() string {
	s.t.Helper()
	binary, err := filepath.Abs("../../bin/terraform-provider-exocomp")
	if err == nil {
		_, err = os.Stat(binary)
	}
	if err != nil {
		s.t.Fatalf("%v: run make build first, or make test-e2e", err)
	}
	return s.writeFile("tofurc", fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"registry.opentofu.org/exocomp/exocomp\" = %q\n  }\n  direct {}\n}\n", filepath.Dir(binary)))
}

// expr is an expression of a configuration; any other value is written as the
// literal that it is.
type expr string

// attrs are attributes of a block by name.
type attrs map[string]any

// with returns the attributes with others added or in their place; nil takes one
// away.
func (a attrs) with(more attrs) attrs {
	out := maps.Clone(a)
	maps.Copy(out, more)
	return out
}

func (r *root) block(head string, a attrs) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s {\n", head)
	for _, name := range slices.Sorted(maps.Keys(a)) {
		switch v := a[name].(type) {
		case nil:
		case expr:
			fmt.Fprintf(&b, "  %s = %s\n", name, v)
		default:
			fmt.Fprintf(&b, "  %s = %s\n", name, r.literal(v))
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// literal writes a value as an expression: JSON is one, but for its strings,
// which are templates.
func (r *root) literal(v any) string {
	r.s.t.Helper()
	doc, err := json.Marshal(v)
	if err != nil {
		r.s.t.Fatal(err)
	}
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(string(doc))
}

const requireProvider = "terraform {\n  required_providers {\n    exocomp = {\n      source = \"registry.opentofu.org/exocomp/exocomp\"\n    }\n  }\n}\n"

// address is that of the resource that most of these tests are about.
const address = "exocomp_provision.edge"

// provision writes the module: one exocomp_provision with these attributes, and
// more text.
func (r *root) provision(a attrs, more ...string) {
	r.s.t.Helper()
	r.write("main.tf", requireProvider+r.block(`resource "exocomp_provision" "edge"`, a)+strings.Join(more, "\n"))
}

// write makes a file of the module and returns its path.
func (r *root) write(name, text string) string {
	r.s.t.Helper()
	rel, err := filepath.Rel(r.s.dir, filepath.Join(r.dir, name))
	if err != nil {
		r.s.t.Fatal(err)
	}
	return r.s.writeFile(rel, text)
}

func (r *root) command(ctx context.Context, args ...string) *exec.Cmd {
	r.s.t.Helper()
	cmd := exec.CommandContext(ctx, r.program, args...)
	cmd.Dir = r.dir
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.s.dir, "TF_CLI_CONFIG_FILE=" + r.s.providerConfig(), "TF_CLI_ARGS=-no-color",
		"TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1", "EXOCOMP_SOCKET=" + r.s.socket(),
	}, r.env...)
	return cmd
}

// told is how a command of the program ended.
type told struct {
	program string
	result
}

func (t told) String() string {
	return fmt.Sprintf("%s %s\nexit code %d\nstdout:\n%s\nstderr:\n%s", t.program, strings.Join(t.args, " "), t.code, t.stdout, t.stderr)
}

// do runs a command of the program.
func (r *root) do(args ...string) told {
	r.s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := r.command(ctx, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	out := told{r.program, result{args: args, stdout: stdout.String(), stderr: stderr.String()}}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		out.code = exit.ExitCode()
	case err != nil:
		r.s.t.Fatalf("%s %v: %v", r.program, args, err)
	}
	return out
}

// ok runs a command that must succeed.
func (r *root) ok(args ...string) told {
	r.s.t.Helper()
	out := r.do(args...)
	if out.code != 0 {
		r.s.t.Fatalf("want success of %s", out)
	}
	return out
}

// apply applies, which must succeed.
func (r *root) apply(args ...string) told {
	r.s.t.Helper()
	return r.ok(append([]string{"apply", "-auto-approve", "-input=false"}, args...)...)
}

// applyFails applies, which must fail and say each part on stderr, however its
// lines are broken.
func (r *root) applyFails(parts ...string) told {
	r.s.t.Helper()
	return r.fails(parts, "apply", "-auto-approve", "-input=false")
}

// fails runs a command that must fail and say each part on stderr.
func (r *root) fails(parts []string, args ...string) told {
	r.s.t.Helper()
	out := r.do(args...)
	if out.code != 1 {
		r.s.t.Fatalf("want exit code 1 of %s", out)
	}
	r.says(out.stderr, parts...)
	return out
}

// says fails the test unless a text of tofu's, whose lines are broken and have a
// bar beside them, holds each part.
func (r *root) says(text string, parts ...string) {
	r.s.t.Helper()
	for _, p := range parts {
		if !strings.Contains(unboxed(text), p) {
			r.s.t.Errorf("%q is not said in:\n%s", p, text)
		}
	}
}

// unboxed takes the frame and the line ends from what tofu prints.
func unboxed(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(c rune) bool {
		return strings.ContainsRune(" \n│╷╵", c)
	}), " ")
}

// holdsEmpty: a plan has nothing to do.
func (r *root) holdsEmpty(when string, args ...string) told {
	r.s.t.Helper()
	out := r.do(append([]string{"plan", "-detailed-exitcode", "-input=false"}, args...)...)
	r.s.holds(out.code == 0, "the plan is empty "+when, out)
	return out
}

// actions applies and returns what the apply meant to do, by address.
func (r *root) actions(args ...string) map[string]string {
	r.s.t.Helper()
	return planned(r.s.t, r.apply(append([]string{"-json"}, args...)...).stdout)
}

// planned reads the changes that a plan or an apply has printed as JSON.
func planned(t *testing.T, stdout string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(stdout) {
		var m struct {
			Type   string `json:"type"`
			Change struct {
				Action   string `json:"action"`
				Resource struct {
					Addr string `json:"addr"`
				} `json:"resource"`
			} `json:"change"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		if m.Type == "planned_change" {
			out[m.Change.Resource.Addr] = m.Change.Action
		}
	}
	return out
}

// provisioned is the resource as the state has it.
type provisioned struct {
	Tainted bool `json:"tainted"`
	Values  struct {
		ID             string            `json:"id"`
		RunID          string            `json:"run_id"`
		Status         string            `json:"status"`
		PlaybookDigest string            `json:"playbook_digest"`
		Hosts          map[string]vars   `json:"hosts"`
		Steps          []json.RawMessage `json:"steps"`
	} `json:"values"`
}

// state returns the resource from the state; found is false where it is not in it.
func (r *root) state() (p provisioned, found bool) {
	r.s.t.Helper()
	var doc struct {
		Values struct {
			Root struct {
				Resources []struct {
					Address string `json:"address"`
					provisioned
				} `json:"resources"`
			} `json:"root_module"`
		} `json:"values"`
	}
	if err := json.Unmarshal([]byte(r.ok("show", "-json").stdout), &doc); err != nil {
		r.s.t.Fatal(err)
	}
	for _, res := range doc.Values.Root.Resources {
		if res.Address == address {
			return res.provisioned, true
		}
	}
	return p, false
}

// spawn starts a command of the program in a process group of its own and does
// not wait for it.
func (r *root) spawn(args ...string) *tofuClient {
	r.s.t.Helper()
	cmd := r.command(context.Background(), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c := &tofuClient{client{s: r.s, cmd: cmd, stderr: newSyncBuffer(), ended: make(chan result, 1)}, newSyncBuffer()}
	cmd.Stdout, cmd.Stderr = c.stdout, c.stderr
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		r.s.t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait()
		c.ended <- result{args: args, stdout: c.stdout.String(), stderr: c.stderr.String(), code: cmd.ProcessState.ExitCode()}
	}()
	r.s.t.Cleanup(func() {
		c.signal(syscall.SIGKILL)
		<-exited
	})
	return c
}

// tofuClient is a command of the program that runs beside the test.
type tofuClient struct {
	client
	stdout *syncBuffer
}

// signal sends a signal to the command and what it started, as a terminal does.
func (c *tofuClient) signal(sig syscall.Signal) { _ = syscall.Kill(-c.cmd.Process.Pid, sig) }

// spawnApply starts an apply and does not wait for it.
func (r *root) spawnApply(args ...string) *tofuClient {
	r.s.t.Helper()
	return r.spawn(append([]string{"apply", "-auto-approve", "-input=false"}, args...)...)
}

// runIDs returns the runs that were ever submitted for a workspace, oldest first.
func (s *site) runIDs(workspace string) []orchestrator.RunID {
	s.t.Helper()
	var ids []orchestrator.RunID
	for _, e := range s.events() { // unfiltered: the daemon may never have heard of the workspace
		if e.Workspace == workspace && e.Kind == orchestrator.EventRunSubmitted {
			ids = append(ids, e.Run)
		}
	}
	return ids
}

// holdsRuns: so many runs were ever submitted for the workspace. It returns the
// newest.
func (s *site) holdsRuns(workspace string, n int, what string) orchestrator.RunID {
	s.t.Helper()
	ids := s.runIDs(workspace)
	s.holds(len(ids) == n, what, ids)
	if len(ids) == 0 {
		return ""
	}
	return ids[len(ids)-1]
}

// taskLines is a role's task file of shell lines, as rawPlay is a play.
func taskLines(lines ...string) string {
	var b strings.Builder
	for i, l := range lines {
		fmt.Fprintf(&b, "- name: Line %d\n  ansible.builtin.raw: %s\n", i+1, quoteYAML(l))
	}
	return b.String()
}
