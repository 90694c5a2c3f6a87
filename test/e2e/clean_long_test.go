//go:build long

package e2e

import (
	"fmt"
	"os"
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
