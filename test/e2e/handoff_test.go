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

// A handoff is a run like any other: the verbs of provision look at it, resume it
// and cancel it. An inventory without hosts stops it, and a corrected one goes on
// in the same run.
func TestHandoffIsResumedAndCancelled(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	applies, play := s.gate("apply"), s.gate("play")
	count := resource("count", applies.count())
	s.infra("edge", map[string]vars{}, count)
	site := s.playbook("site", rawPlay("tf:edge", play.line()))
	r, run := s.handoff("edge", site)
	hint := run.Steps[1].Failure.Hint
	s.holds(r.code == 4 && run.Kind == orchestrator.RunHandoff && len(run.Steps) == 2, "a handoff without hosts is refused in step 2 of 2", r)
	s.holds(strings.HasSuffix(hint, "exocomp workspace apply edge --wait && exocomp provision resume edge"), "the hint says how to go on", hint)

	s.infra("edge", thisMachine(), count)
	s.ok("workspace", "apply", "edge", "--wait")
	s.ok("provision", "resume", "edge")
	play.await(1)
	s.ok("provision", "cancel", "edge", "--wait")
	s.wantStates(s.run(string(run.ID)), orchestrator.RunCancelled, succeeded, cancelled)

	play.open()
	s.ok("provision", "resume", "edge", "--from", "ansible-play", "--wait")
	next := s.run("edge")
	s.wantStates(next, orchestrator.RunSucceeded, succeeded, succeeded)
	s.holds(next.Kind == orchestrator.RunHandoff && next.Steps[0].TakenFrom == run.ID, "a handoff is taken over, too", next.Steps[0])
	applies.ran(1)
	play.ran(2)
	s.holds(s.ok("handoff", "status", "edge").stdout == s.ok("provision", "status", "edge").stdout, "both show the same ledger view")
	s.fails(2, []string{"a handoff has no step", "tofu-apply, ansible-play"}, "provision", "resume", "edge", "--from", "ssh-wait")
	s.assertClean()
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
