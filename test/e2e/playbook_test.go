package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// jobOf runs a command with --wait that submits a job, and returns how it ended
// and what the ledger says of the job.
func (s *site) jobOf(args ...string) (result, orchestrator.Job) {
	s.t.Helper()
	var passed []string
	if i := slices.Index(args, "--"); i >= 0 {
		args, passed = args[:i], args[i:]
	}
	r := s.cli(slices.Concat(args, []string{"--wait", "--json"}, passed)...)
	var j orchestrator.Job
	if err := json.Unmarshal([]byte(r.stdout), &j); err != nil {
		s.t.Fatalf("%v: %s", err, r)
	}
	return r, j
}

// playbookRun runs a playbook against tf:edge to its end.
func (s *site) playbookRun(play string, flags ...string) (result, orchestrator.Job) {
	s.t.Helper()
	return s.jobOf(append([]string{"playbook", "run", play, "--inventory", "tf:edge"}, flags...)...)
}

// TestPlaybookRunFailsClosed: what names no machine, or not surely the right
// ones, queues nothing; what met nobody is no success.
func TestPlaybookRunFailsClosed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	s.workspace("edge", map[string]vars{})
	log := filepath.Join(s.dir, "played")
	play := s.playbook("site", rawPlay("tf:edge", "echo >>"+log))
	refuses := func(code int, what string, parts ...string) {
		t.Helper()
		before := len(jsonOf[[]orchestrator.Job](s, "jobs", "list"))
		s.fails(code, parts, "playbook", "run", play, "--inventory", "tf:edge")
		s.holds(len(jsonOf[[]orchestrator.Job](s, "jobs", "list")) == before, what+" queues nothing")
	}
	s.fails(2, []string{"prod", "exocomp workspace"}, "playbook", "run", play, "--inventory", "tf:prod")
	refuses(4, "an inventory that was never captured", "never captured", "exocomp workspace apply edge")
	s.ok("workspace", "apply", "edge", "--wait")
	refuses(4, "a hostless inventory", "names no hosts")
	s.writeHosts("edge", thisMachine())
	s.ok("workspace", "apply", "edge", "--wait")
	file := jsonOf[rpc.InventoryView](s, "inventory", "show", "edge").Inventory.Path
	content := s.read(file)
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(content, "here", "there")), 0o600); err != nil {
		t.Fatal(err)
	}
	refuses(4, "a tampered file", "differs from the ledger", "exocomp workspace refresh edge")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	refuses(4, "a lost file", "has lost its file", "exocomp workspace refresh edge")
	s.ok("workspace", "refresh", "edge", "--wait")

	r, j := s.playbookRun(play)
	s.holds(r.code == 0 && j.Kind == orchestrator.JobPlaybookRun && j.State == orchestrator.JobSucceeded && j.Run == "", "a good one is a job of its own", r)
	s.holds(s.read(log) == "\n", "and has played once", s.read(log))
	typo := s.playbook("typo", rawPlay("tf:egde", "true"))
	r, j = s.playbookRun(typo)
	s.holds(r.code == 1 && strings.Contains(j.Failure.Message, "converged nobody") && strings.Contains(j.Failure.Message, "tf:egde"), "a typo in hosts: fails", r)
	said := slices.ContainsFunc(s.events(), func(e orchestrator.Event) bool {
		return e.Job == j.ID && e.Kind == orchestrator.EventJobFinished && strings.Contains(e.Message, "converged nobody")
	})
	s.holds(said, "the event says so")
	s.holds(strings.Contains(s.ok("jobs", "show", string(j.ID)).stdout, "converged nobody"), "jobs show says so")
	r, j = s.playbookRun(play, "--", "--limit", "elsewhere")
	s.holds(r.code == 1 && strings.Contains(j.Failure.Message, "converged nobody") && strings.Contains(j.Failure.Message, "--limit elsewhere"), "a disjoint --limit fails", r)
	s.fails(2, []string{"--inventory", "cannot be passed"}, "playbook", "run", play, "--inventory", "tf:edge", "--", "--inventory", "x")
	s.fails(2, []string{"--become", "cannot be passed"}, "playbook", "run", play, "--inventory", "tf:edge", "--", "--become")
	s.fails(2, []string{"--inventory is missing"}, "playbook", "run", play)
	s.fails(2, []string{"no playbook at"}, "playbook", "run", play+"x", "--inventory", "tf:edge")
}

// runIn runs a command that must succeed in a directory.
func (s *site) runIn(dir string, argv ...string) {
	s.t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+s.dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %v\n%s", argv, err, out)
	}
}

// offline starts a daemon in a network namespace of its own, in which nothing is
// up; clients reach it all the same, by its socket.
func (s *site) offline() {
	s.t.Helper()
	binary := s.binary
	s.binary = s.writeFile("offline", "#!/bin/sh\nexec unshare --net "+binary+" \"$@\"\n")
	if err := os.Chmod(s.binary, 0o700); err != nil {
		s.t.Fatal(err)
	}
	s.start()
	s.binary = binary
}
