package steptest

import (
	"crypto/ed25519"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/inventory"
)

// workspace is the name of a site's workspace.
const workspace = "edge"

// Site is what one test's handler works with: a ledger, directories, tools that
// are scripts, and a host.
type Site struct {
	Ledger *Ledger
	Dir    string // a scratch directory
	Port   int    // where the host web1 answers, on 127.0.0.1
	Key    orchestrator.Secret

	cfg jobs.Config
	job orchestrator.Job
}

// NewSite makes a site with a job of a kind.
func NewSite(t *testing.T, kind orchestrator.StepKind) *Site {
	t.Helper()
	dir, err := os.MkdirTemp("", "step") // short, for the sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	s := &Site{Dir: dir, Port: host(t, signer), Key: orchestrator.NewSecret(string(pem.EncodeToMemory(block)))}
	inv, err := inventory.Derive(workspace, map[string]inventory.Output{"hosts": {Value: json.RawMessage(
		fmt.Sprintf(`{"web1": {"ansible_host": "127.0.0.1", "ansible_port": %d}}`, s.Port))}})
	if err != nil {
		t.Fatal(err)
	}
	content, err := inventory.Render(inv)
	if err != nil {
		t.Fatal(err)
	}
	s.Ledger = &Ledger{
		Row: orchestrator.Workspace{Name: workspace, Dir: dir, Approval: orchestrator.ApprovalNever},
		Inv: orchestrator.Inventory{Workspace: workspace, Content: content, Digest: inventory.Digest(content), Hosts: inv.HostNames()},
		Chain: orchestrator.Run{
			ID: "run_1", Workspace: workspace, Inventory: inventory.Digest(content),
			Spec: orchestrator.RunSpec{SSHWait: time.Minute},
		},
	}
	s.job = orchestrator.Job{
		ID: "job_1", Kind: orchestrator.JobStep, StepKind: kind, State: orchestrator.JobRunning,
		Workspace: workspace, Run: "run_1", StartedAt: time.Now(),
		Attempt: orchestrator.Attempt{Number: 1, ID: "attempt1", Token: orchestrator.NewSecret("token-" + filepath.Base(dir))},
	}
	s.cfg = jobs.Config{Queue: queue{}, DataDir: filepath.Join(dir, "d"), RuntimeDir: filepath.Join(dir, "r")}
	return s
}

// host is an SSH server that lets nobody in, for as long as the test runs.
func host(t *testing.T, key ssh.Signer) (port int) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := &ssh.ServerConfig{NoClientAuth: false, PasswordCallback: func(ssh.ConnMetadata, []byte) (*ssh.Permissions, error) {
		return nil, os.ErrPermission
	}}
	config.AddHostKey(key)
	var running sync.WaitGroup
	t.Cleanup(func() {
		_ = ln.Close()
		running.Wait()
	})
	running.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer func() { _ = conn.Close() }()
				_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
				_, _, _, _ = ssh.NewServerConn(conn, config)
			})
		}
	})
	return ln.Addr().(*net.TCPAddr).Port
}

// Tool writes an executable that says in Dir/runs what it was called for, by
// its sh(1) function `ran WORD`, and that waits in `hold` while Dir/hold is
// there, after it has made Dir/held.
func (s *Site) Tool(t *testing.T, name, script string) (path string) {
	t.Helper()
	path = filepath.Join(s.Dir, name)
	text := fmt.Sprintf(`#!/bin/sh
dir=%s
ran() { echo "$1" >>$dir/runs; }
hold() { while [ -e $dir/hold ]; do : >$dir/held; sleep 0.02; done; }
%s`, s.Dir, script)
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// Ansible writes an ansible-playbook under which every task changes web1.
func (s *Site) Ansible(t *testing.T) (path string) {
	return s.Tool(t, "ansible-playbook", `for last; do :; done
ran $(basename $last)
hold
{
echo '{"event":"play","play":"all","id":"1","pattern":"all","hosts":1}'
echo '{"event":"task","task":"touch","id":"2"}'
echo '{"event":"result","host":"web1","task":"touch","id":"2","status":"changed"}'
echo '{"event":"stats","host":"web1","ok":1,"changed":1}'
echo '{"event":"end"}'
} >&$EXOCOMP_EVENTS_FD
`)
}

// Runs returns what the tools were called for, in order.
func (s *Site) Runs(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.Dir, "runs"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Fields(string(b))
}

// Hold makes the tools wait.
func (s *Site) Hold(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.Dir, "hold"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Release lets them go on.
func (s *Site) Release(t *testing.T) {
	t.Helper()
	if err := os.Remove(filepath.Join(s.Dir, "hold")); err != nil {
		t.Fatal(err)
	}
}

// AwaitHeld returns when a tool waits.
func (s *Site) AwaitHeld(t *testing.T) {
	t.Helper()
	s.await(t, "a tool runs", func() bool {
		_, err := os.Stat(filepath.Join(s.Dir, "held"))
		return err == nil
	})
}

// await polls: what it waits for happens in other processes.
func (s *Site) await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("%s: not within a minute", what)
}

// Attempt returns the site's attempt as a new daemon sees it.
func (s *Site) Attempt(t *testing.T) *jobs.Attempt {
	t.Helper()
	a, err := jobs.NewAttempt(s.cfg, s.job)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Kill ends a phase's supervisor and its tool as a crash does.
func (s *Site) Kill(t *testing.T, a *jobs.Attempt, phase string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(a.ControlDir, phase, "process.json"))
	if err != nil {
		t.Fatal(err)
	}
	type process struct{ PID int }
	var r struct{ Supervisor, Tool process }
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	for _, p := range []process{r.Supervisor, r.Tool} {
		if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}

// onlyOnce fails the test where a tool ran twice for the same.
func (s *Site) onlyOnce(t *testing.T) {
	t.Helper()
	runs := s.Runs(t)
	slices.Sort(runs)
	if once := slices.Compact(slices.Clone(runs)); len(once) != len(runs) {
		t.Errorf("tools ran for %q, want each once", runs)
	}
	if s.Ledger.pinned > 1 {
		t.Errorf("pins were changed %d times, want once", s.Ledger.pinned)
	}
}
