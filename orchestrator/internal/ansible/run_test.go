package ansible

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/seeds"
	"github.com/exocomp/exocomp/test/nethost"
)

// bench runs what Prepare describes, as a supervisor would.
type bench struct {
	install Install
	work    string
	agent   string // socket of an agent with the lab's key and the fleet's
	fleet   string // the fleet's public key, an authorized_keys line
}

// newBench fails where Ansible is missing: a machine without it must not pass
// for one on which everything works.
func newBench(t *testing.T, lab *nethost.Lab) *bench {
	t.Helper()
	install, err := Locate(t.Context(), os.Getenv("EXOCOMP_TEST_ANSIBLE_PLAYBOOK"), "")
	if err != nil {
		t.Fatalf("locate ansible-playbook: %v", err)
	}
	work, err := os.MkdirTemp("", "w")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(work); err != nil {
			t.Error(err)
		}
	})
	b := &bench{install: install, work: work}
	b.serveAgent(t, lab.Key().Path)
	return b
}

func (b *bench) serveAgent(t *testing.T, keyFile string) {
	t.Helper()
	data, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	login, err := ssh.ParseRawPrivateKey(data)
	if err != nil {
		t.Fatal(err)
	}
	public, fleet, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	b.fleet = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) + " exocomp fleet  of the lab"
	ring := agent.NewKeyring()
	for _, k := range []any{fleet, login} {
		if err := ring.Add(agent.AddedKey{PrivateKey: k}); err != nil {
			t.Fatal(err)
		}
	}
	b.agent = filepath.Join(b.work, "agent")
	l, err := net.Listen("unix", b.agent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_ = agent.ServeAgent(ring, c)
				_ = c.Close()
			}()
		}
	}()
}

// ran is a run that is over.
type ran struct {
	end      End
	log      string
	progress *Progress
	err      error // the verdict
}

// run fills in what a test does not care about, and executes.
func (b *bench) run(t *testing.T, in Input) ran {
	t.Helper()
	in.Install, in.Path = b.install, os.Getenv("PATH")
	if in.Work == "" {
		in.Work = filepath.Join(b.work, "a")
	}
	p, err := Prepare(in)
	if err != nil {
		t.Fatalf("prepare: %v", err)
	}
	return b.execute(t, in, p)
}

func (b *bench) execute(t *testing.T, in Input, p Prepared) ran {
	t.Helper()
	events := filepath.Join(b.work, "events")
	_ = os.Remove(events) // of an earlier run
	f, err := os.OpenFile(events, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.Argv[0], p.Argv[1:]...)
	cmd.Dir = p.Dir
	cmd.Env = append(p.Env, "SSH_AUTH_SOCK="+b.agent, seeds.EventsFD+"=3")
	cmd.ExtraFiles = []*os.File{f}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	log, err := os.CreateTemp(b.work, "log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	var r ran
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		r.end.ExitCode = exit.ExitCode()
	} else if err != nil {
		t.Fatalf("run ansible-playbook: %v", err)
	}
	b.endMasters(t, in.Work, p)
	out, err := os.ReadFile(log.Name())
	if err != nil {
		t.Fatal(err)
	}
	r.log = string(out)
	g, err := os.Open(events)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if r.progress, err = ReadEvents(g); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(r.log), "\n")
	r.err = Verdict(r.end, r.progress, Scope{Workspace: "edge",
		Hosts: hostsOf(t, in.Inventory), Args: in.Args, LastLines: lines[max(0, len(lines)-20):],
	})
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s\nexit %d, verdict: %v\n%s", strings.Join(p.Argv, " "), r.end.ExitCode, r.err, r.log)
		}
	})
	return r
}

// endMasters does the part of a supervisor's sweep that matters here, and holds
// that every connection of the run had its socket in the run's own directory.
func (b *bench) endMasters(t *testing.T, work string, p Prepared) {
	t.Helper()
	sockets, err := filepath.Glob(filepath.Join(work, "cp", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sockets {
		cmd := exec.Command("ssh", "-F", "none", "-o", "ControlPath="+s, "-O", "exit", "any")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("end ssh master %s: %v: %s", s, err, out)
		}
	}
}

func hostsOf(t *testing.T, inventory []byte) []string {
	t.Helper()
	var tree struct {
		All struct{ Hosts map[string]any }
	}
	if err := json.Unmarshal(inventory, &tree); err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range tree.All.Hosts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// inventoryOf returns the inventory of some hosts, all in a group web, and their
// pins. A host without a machine gets the variables that it is given alone.
func inventoryOf(t *testing.T, hosts map[string]*nethost.Host, vars map[string]map[string]any) (inventory, pins []byte) {
	t.Helper()
	all, members := map[string]any{}, map[string]any{}
	for name, h := range hosts {
		v := map[string]any{"ansible_python_interpreter": "/usr/bin/python3"}
		if h != nil {
			v["ansible_host"], v["ansible_port"], v["ansible_user"] = h.Addr(), h.Port(), h.User()
			pins = fmt.Appendf(pins, "%s %s\n", orchestrator.KnownHostsName(h.Addr(), h.Port()), h.PublicHostKey(nethost.ED25519))
		}
		for k, x := range vars[name] {
			v[k] = x
		}
		all[name], members[name] = v, map[string]any{}
	}
	inventory, err := json.Marshal(map[string]any{"all": map[string]any{
		"hosts": all, "children": map[string]any{"web": map[string]any{"hosts": members}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return inventory, pins
}

// snapshot writes files into a directory and returns it.
func snapshot(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func wantCode(t *testing.T, err error, code orchestrator.Code, words ...string) {
	t.Helper()
	if orchestrator.CodeOf(err) != code {
		t.Fatalf("error is %v, want one of code %q", err, code)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}
