package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/test/nethost"
)

// handoff runs the short chain with the lab's key to its end.
func (s *site) handoff(workspace, playbook string, flags ...string) (result, orchestrator.Run) {
	s.t.Helper()
	args := append([]string{"handoff", "run", workspace, playbook, "--wait"}, flags...)
	if s.lab != nil {
		args = append(args, "--ssh-identity", s.lab.Key().Path)
	}
	r := s.cli(args...)
	return r, jsonOf[orchestrator.Run](s, "handoff", "status", workspace)
}

// A handoff pins before it plays, logs in as the inventory says, and leaves no
// automation user behind. A changed key ends it before anything is sent.
func TestHandoffPinsAndOnboardsNobody(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	s.start()
	h := s.host("web1")
	s.workspace("edge", map[string]vars{"web1": hostVars(h)})
	site := s.playbook("site", rawPlay("tf:edge", "echo x >>/root/played"))
	r, run := s.handoff("edge", site)
	s.holds(r.code == 0 && run.State == orchestrator.RunSucceeded, "a handoff plays on a host that nobody onboarded", r)
	s.holds(s.fileOn(h, "/root/played") == "x\n", "once", s.fileOn(h, "/root/played"))
	s.holds(!slices.ContainsFunc(h.Logins(), func(l nethost.Login) bool { return l.User != h.User() }), "every login is the inventory's user's", h.Logins())
	s.holds(!strings.Contains(s.fileOn(h, "/etc/passwd"), "exocomp:"), "there is no automation user")
	s.holdsPinFirst(run, h)

	old := s.pins()[0].SHA256
	s.rotateHostKeys(h)
	logins := len(h.Logins())
	r, run = s.handoff("edge", site)
	s.holds(r.code == 4 && run.Steps[1].State == orchestrator.StepFailed && len(h.Logins()) == logins, "a changed key fails the play before any login", r)
	f := run.Steps[1].Failure
	s.holds(strings.Contains(f.Message, old) && strings.Contains(f.Hint, "exocomp host onboard --rotate edge/web1 --wait && exocomp provision resume edge"),
		"both the pin and the command to go on with are named", f)
	s.holds(s.fileOn(h, "/root/played") == "x\n", "and nothing is played", s.fileOn(h, "/root/played"))
}
