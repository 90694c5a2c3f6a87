//go:build long

package e2e

import (
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// A handoff is a run like any other: the verbs of provision look at it, resume it
// and cancel it. An inventory without hosts stops it, and a corrected one goes on
// in the same run.
func TestLongHandoffIsResumedAndCancelled(t *testing.T) {
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
