package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/exocomp/exocomp/test/nethost"
)

var allSucceeded = []orchestrator.StepState{
	orchestrator.StepSucceeded, orchestrator.StepSucceeded, orchestrator.StepSucceeded, orchestrator.StepSucceeded,
}

// TestGateChain is the main job on one host: what the ledger, the host and the
// published files say after it, and that doing it again changes nothing.
func TestGateChain(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	web1 := s.host("web1")
	s.start()
	s.workspace("edge", map[string]vars{"web1": hostVars(web1)})
	play := s.playbook("site", copyPlay("tf:edge", "converged as {{ ansible_user }}\n", "/etc/motd"))

	run := s.converge("edge", play)
	s.holdsChain(run)
	s.holdsPinFirst(run, web1)
	s.holdsOnboarded(web1)
	s.holdsCaptured("edge", 1, 1)
	s.holds(s.fileOn(web1, "/etc/motd") == "converged as exocomp\n", "the play changed the host, as the automation user",
		s.fileOn(web1, "/etc/motd"))

	view := jsonOf[rpc.InventoryView](s, "inventory", "show", "tf:edge")
	s.holds(len(view.Hosts) == 1 && view.Hosts[0].Login == orchestrator.LoginAutomation &&
		!view.Hosts[0].AdmittedAt.IsZero() && view.Hosts[0].Fingerprint == web1.HostKeyFingerprint(nethost.ED25519),
		"inventory show says that the host is admitted, as whom it logs in, and its pin", view.Hosts)

	before := s.pins()
	last := s.events()
	again := s.converge("edge", play)
	s.holds(again.ID != run.ID && slices.Equal(states(again), allSucceeded), "a second run is a run of its own and does all four steps", again)
	s.holds(len(again.Steps[0].Report.Changes) == 0, "the second run applies no change", again.Steps[0].Report)
	s.holds(changedOn(again.Steps[2], "web1") == 0 && changedOn(again.Steps[3], "web1") == 0,
		"the second run changes nothing on the host", again.Steps[2].Report, again.Steps[3].Report)
	fresh := s.events("--after", fmt.Sprint(last[len(last)-1].ID))
	s.holds(!slices.ContainsFunc(fresh, func(e orchestrator.Event) bool { return strings.HasPrefix(string(e.Kind), "pin.") }) &&
		slices.EqualFunc(before, s.pins(), func(a, b orchestrator.Pin) bool { return a.Key == b.Key && a.AddedAt.Equal(b.AddedAt) }),
		"the second run pins nothing new", fresh)
}

// holdsChain: four steps in order under one id, by states, events and times.
func (s *site) holdsChain(run orchestrator.Run) {
	s.t.Helper()
	var kinds []orchestrator.StepKind
	inOrder := true
	for i, st := range run.Steps {
		kinds = append(kinds, st.Kind)
		inOrder = inOrder && st.Seq == i+1 && !st.FinishedAt.Before(st.StartedAt) &&
			(i == 0 || !st.StartedAt.Before(run.Steps[i-1].FinishedAt))
	}
	s.holds(slices.Equal(kinds, orchestrator.RunProvision.Steps()) && slices.Equal(states(run), allSucceeded),
		"the run has the four steps, and each succeeded", run.Steps)
	s.holds(inOrder, "no step started before the one before it had finished", run.Steps)

	var got, want []string
	for _, e := range s.events("--run", string(run.ID)) {
		if e.Step != "" && (e.Kind == orchestrator.EventStepReleased || e.Kind == orchestrator.EventStepStarted || e.Kind == orchestrator.EventStepFinished) {
			got = append(got, string(e.Kind)+" "+string(e.Step))
		}
	}
	for _, k := range orchestrator.RunProvision.Steps() {
		for _, e := range []orchestrator.EventKind{orchestrator.EventStepReleased, orchestrator.EventStepStarted, orchestrator.EventStepFinished} {
			want = append(want, string(e)+" "+string(k))
		}
	}
	s.holds(slices.Equal(got, want), "the events under the run's id tell the steps in order", got)
}

// holdsPinFirst: the key was pinned before anybody logged in to the host.
func (s *site) holdsPinFirst(run orchestrator.Run, h *nethost.Host) {
	s.t.Helper()
	events := s.events("--run", string(run.ID))
	index := func(fits func(orchestrator.Event) bool) int { return slices.IndexFunc(events, fits) }
	pinned := index(func(e orchestrator.Event) bool { return e.Kind == orchestrator.EventPinAdded && e.Host == h.Name() })
	pushed := index(func(e orchestrator.Event) bool {
		return e.Kind == orchestrator.EventJobPhase && e.Step != orchestrator.StepTofuApply
	})
	logins := h.Logins()
	s.holds(pinned >= 0 && pushed > pinned && len(logins) > 0 && logins[0].Time.After(events[max(pinned, 0)].At),
		"the pin was recorded before anything was pushed", events, logins)
	pins := s.pins()
	s.holds(len(pins) == 1 && pins[0].KeyType+" "+pins[0].Key == h.PublicHostKey(nethost.ED25519) && pins[0].Source == orchestrator.PinFirstUse,
		"the pin is the host's own key, on first use", pins)
	shown := s.ok("host", "known-hosts").stdout
	s.holds(strings.Contains(shown, h.Addr()+" "+h.PublicHostKey(nethost.ED25519)) && strings.Contains(shown, h.HostKeyFingerprint(nethost.ED25519)),
		"host known-hosts shows the key and its fingerprint", shown)
}

// holdsOnboarded: the automation user logs in by the fleet key and becomes root.
func (s *site) holdsOnboarded(h *nethost.Host) {
	s.t.Helper()
	fleet := strings.TrimSpace(s.ok("host", "fleet-key").stdout)
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(fleet))
	if err != nil {
		s.t.Fatal(err)
	}
	authorized := strings.Split(strings.TrimSpace(s.fileOn(h, "/home/exocomp/.ssh/authorized_keys")), "\n")
	s.holds(slices.Equal(authorized, []string{fleet}), "the fleet key stands whole in the automation user's authorized_keys", authorized)
	out, err := h.Exec(s.t.Context(), "runuser", "-u", "exocomp", "--", "sudo", "-n", "id", "-u")
	s.holds(err == nil && strings.TrimSpace(string(out)) == "0", "passwordless sudo works", string(out), err)
	s.holds(slices.ContainsFunc(h.Logins(), func(l nethost.Login) bool {
		return l.User == "exocomp" && l.Fingerprint == ssh.FingerprintSHA256(key)
	}), "the automation user logged in with the fleet key", h.Logins())
}

// changedOn returns how many tasks of a step changed a host, -1 where the
// step's report does not name it.
func changedOn(step orchestrator.Step, host string) int {
	if r := hostReport(step, host); r != nil {
		return r.Changed
	}
	return -1
}

// hostReport returns a host's line in a step's report, or nil.
func hostReport(step orchestrator.Step, host string) *orchestrator.HostReport {
	if step.Report == nil {
		return nil
	}
	for i := range step.Report.Hosts {
		if step.Report.Hosts[i].Name == host {
			return &step.Report.Hosts[i]
		}
	}
	return nil
}

// holdsLocal: a local host of a run was skipped by steps 2 and 3 and played.
func (s *site) holdsLocal(run orchestrator.Run, host string) {
	s.t.Helper()
	waited, onboarded, played := hostReport(run.Steps[1], host), hostReport(run.Steps[2], host), hostReport(run.Steps[3], host)
	s.holds(waited != nil && waited.State == orchestrator.HostSkipped, "a local host is not waited for", run.Steps[1].Report)
	s.holds(onboarded == nil || onboarded.State == orchestrator.HostSkipped, "a local host is not onboarded", run.Steps[2].Report)
	s.holds(played != nil && played.OK > 0, "a local host is played", run.Steps[3].Report)
}
