//go:build long

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// No connection to a host, and no session on it, outlives the job.
func TestLongCleanHostsAfterPlays(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	host := s.host("web1")
	s.start()
	play := s.hostGate(host, "play")
	s.infra("edge", map[string]vars{"web1": hostVars(host)})
	site := s.playbook("site", rawPlay("tf:edge", play.line()))
	onboarding := s.playbook("onboard", rawPlay("all", "true"))
	run := string(s.submit("edge", site, "--onboard-playbook", onboarding))
	play.await(1)
	masters := 0
	for _, p := range s.jobProcesses() {
		if strings.Contains(p.line, "[mux]") {
			masters++
		}
	}
	if masters == 0 {
		t.Error("there is no ssh master while the play runs: this test proves nothing")
	}
	s.assertPrivate()
	play.open()
	if last := s.awaitRun(run); last.State != orchestrator.RunSucceeded {
		t.Errorf("the run is %s: %+v", last.State, last.FailedStep())
	}
	s.assertClean()
	s.await("the end of the sessions", func() bool {
		processes, err := host.Processes()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range processes {
			if strings.Contains(strings.Join(p.Args, " "), "@") { // sshd: root@pts/0
				return false
			}
		}
		return true
	})
}

// Whatever the umask is, what exocomp writes is for its own user only: the
// ledger, keys, tokens, logs, inventories, known_hosts, and all that a job has.
func TestLongCleanModesUnderUmask0(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	host := s.host("web1")
	// umask is the process's: only a child can have another one
	s.binary = s.writeFile("exocomp", fmt.Sprintf("#!/bin/sh\numask 0\nexec %s \"$@\"\n", s.binary))
	if err := os.Chmod(s.binary, 0o700); err != nil {
		t.Fatal(err)
	}
	s.start()
	apply, play := s.gate("apply"), s.hostGate(host, "play")
	s.infra("edge", map[string]vars{"web1": hostVars(host)}, resource("slow", apply.line()))
	site := s.playbook("site", rawPlay("tf:edge", play.line()))
	run := string(s.submit("edge", site, "--onboard-playbook", s.playbook("onboard", rawPlay("all", "true"))))
	apply.await(1)
	s.assertPrivate()
	apply.open()
	play.await(1)
	s.assertPrivate("ledger.db", "known_hosts", "identity.txt", "edge.json", "operator.token", "log", "agent.sock")
	play.open()
	s.awaitRun(run)
	s.assertPrivate("ledger.db")
	s.assertClean()
}

// What a play daemonizes on a local host ends with its job, be that a success,
// a failure, a cancellation or a crash.
func TestLongCleanAfterDaemonizingPlays(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	s.infra("edge", thisMachine())
	pids := func(name string) string { return filepath.Join(s.dir, name+".pids") }
	leave := func(name, then string) string {
		return s.playbook("leave", rawPlay("tf:edge", strings.Join(append(daemonize(pids(name)), then), "\n")))
	}

	if _, run := s.provision("edge", leave("failure", "false")); run.State != orchestrator.RunFailed {
		t.Errorf("the failing play's run is %s", run.State)
	}
	s.assertClean()
	s.assertGone(pids("failure"), 3)

	leave("success", "true")
	s.ok("provision", "resume", "edge", "--wait")
	s.assertClean()
	s.assertGone(pids("success"), 3)

	for _, how := range []string{"cancel", "force"} {
		g := s.gate(how)
		run := string(s.submit("edge", leave(how, g.line())))
		g.await(1)
		args := []string{"provision", "cancel", run, "--wait"}
		if how == "force" {
			args = append(args, "--force")
		}
		s.ok(args...)
		s.assertClean()
		s.assertGone(pids(how), 3)
	}

	// without a supervisor only the token, and a cgroup where there is one, tell
	crash := s.gate("crash")
	run := string(s.submit("edge", leave("crash", crash.line())))
	crash.await(1)
	crash.open()
	s.crashEverything()
	s.awaitRun(run)
	s.assertClean()
}
