package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/test/nethost"
)

var failedOnboarding = []orchestrator.StepState{
	orchestrator.StepSucceeded, orchestrator.StepSucceeded, orchestrator.StepFailed, orchestrator.StepBlocked,
}

// holdsRefused: step 3 failed on a changed key, naming both, and nobody has
// logged in to the host since.
func (s *site) holdsRefused(r result, run orchestrator.Run, h *nethost.Host, logins int, old string) {
	s.t.Helper()
	s.holds(r.code == 4 && slices.Equal(states(run), failedOnboarding), "a changed host key fails step 3, exit code 4", r)
	s.holds(len(h.Logins()) == logins, "nothing was pushed: no login since the change", h.Logins())
	f := run.Steps[2].Failure
	s.holds(f != nil && f.Code == orchestrator.CodeRefused && strings.Contains(f.Message, old) && strings.Contains(f.Message, h.HostKeyFingerprint(nethost.ED25519)),
		"the failure names both fingerprints", f)
}

func (s *site) rotateHostKeys(h *nethost.Host) {
	s.t.Helper()
	if err := h.RotateHostKeys(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func pinned(pins []orchestrator.Pin, fingerprint string) bool {
	return slices.ContainsFunc(pins, func(p orchestrator.Pin) bool { return p.SHA256 == fingerprint })
}

// TestGateManInTheMiddle: somebody takes the host's place between its
// onboarding and its play. He lets anybody in; nobody comes.
func TestGateManInTheMiddle(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	web1 := s.host("web1")
	// The play's intent is durable and nothing of it has started.
	crash := s.start("EXOCOMP_FAULT=after-intent:ansible-play")
	s.workspace("edge", map[string]vars{"web1": hostVars(web1)})
	play := s.playbook("site", rawPlay("tf:edge", "echo played >>/root/played"))
	id := string(s.submit("edge", play, s.lightly()...))
	select {
	case <-crash.exited:
	case <-time.After(2 * patience):
		t.Fatalf("the daemon does not crash; the run: %+v", s.run(id))
	}
	mallory, err := s.lab.MITM(t.Context(), web1)
	if err != nil {
		t.Fatal(err)
	}
	s.start()
	run := s.awaitRun(id)
	play4 := run.Steps[3]
	s.holds(run.Steps[2].State == orchestrator.StepSucceeded && play4.State == orchestrator.StepFailed,
		"a man in the middle at play time fails step 4", run)
	s.holds(len(mallory.Logins()) == 0, "nobody logged in to him", mallory.Logins())
	s.holds(play4.Failure != nil && strings.Contains(play4.Failure.Message, "web1") && strings.Contains(play4.Failure.Hint, "exocomp host onboard --rotate"),
		"the failure names the host and says that its key is another", play4.Failure)
	if err := mallory.Close(); err != nil {
		t.Fatal(err)
	}
	s.holds(s.fileOn(web1, "/root/played") == "", "the play did not run on the host")
	s.ok("provision", "resume", "edge", "--wait")
	s.holds(s.fileOn(web1, "/root/played") == "played\n", "with him gone, resume plays the real host", s.fileOn(web1, "/root/played"))
}
