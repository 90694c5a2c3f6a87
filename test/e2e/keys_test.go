package e2e

import (
	"slices"
	"strings"

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
