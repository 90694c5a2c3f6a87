//go:build long

package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/test/nethost"
)

// TestLongGateRebuild: a new machine at an old address, by the word of its
// inventory; and a host that leaves.
func TestLongGateRebuild(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	web1 := s.host("web1")
	s.start()
	hosts := func(id string) map[string]vars {
		return map[string]vars{"here": local, "web1": hostVars(web1, vars{"exocomp_instance_id": id})}
	}
	s.workspace("edge", hosts("i-1"))
	play := s.playbook("site", rawPlay("tf:edge", "true"))
	s.converge("edge", play, s.lightly()...)
	old, logins := web1.HostKeyFingerprint(nethost.ED25519), len(web1.Logins())

	s.rotateHostKeys(web1)
	r, run := s.provision("edge", play, s.lightly()...)
	s.holdsRefused(r, run, web1, logins, old)

	s.writeHosts("edge", hosts("i-2"))
	s.converge("edge", play, s.lightly()...)
	pins := s.pins()
	s.holds(len(pins) == 1 && pinned(pins, web1.HostKeyFingerprint(nethost.ED25519)) && pins[0].InstanceID == "i-2",
		"another exocomp_instance_id makes the new key a first use", pins)
	s.holds(slices.ContainsFunc(s.events("--security"), func(e orchestrator.Event) bool {
		return e.Kind == orchestrator.EventPinRetired && e.Host == "web1" && strings.Contains(e.Message, "exocomp_instance_id")
	}), "the old pin is retired with an event that says why")

	s.writeHosts("edge", map[string]vars{"here": local})
	s.ok("workspace", "apply", "edge", "--wait")
	s.holds(len(s.pins()) == 0 && !strings.Contains(s.ok("host", "known-hosts").stdout, web1.Addr()),
		"a host that leaves the outputs has its pin retired", s.pins())
	s.holds(!strings.Contains(s.read(filepath.Join(s.data(), "known_hosts")), web1.Addr()), "and is gone from the published known_hosts")
	s.writeHosts("edge", hosts("i-2"))
	s.ok("workspace", "apply", "edge", "--wait")
	s.holds(len(s.pins()) == 0, "a host that comes back is not trusted by its retired pin", s.pins())
}

// TestLongGateChangedKey: a host that answers with another key gets nothing until a
// person has said that it is right, by --rotate or by forget.
func TestLongGateChangedKey(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	web1 := s.host("web1")
	s.start()
	s.workspace("edge", map[string]vars{"web1": hostVars(web1)})
	play := s.playbook("site", rawPlay("tf:edge", "echo played >>/root/played"))
	s.converge("edge", play, s.lightly()...)

	old, logins := web1.HostKeyFingerprint(nethost.ED25519), len(web1.Logins())
	s.rotateHostKeys(web1)
	r, run := s.provision("edge", play, s.lightly()...)
	s.holdsRefused(r, run, web1, logins, old)
	s.holds(strings.Contains(r.String(), "exocomp host onboard --rotate edge/web1"), "it says how to accept the new key", r)
	s.holds(slices.ContainsFunc(s.events("--security", "--workspace", "edge"), func(e orchestrator.Event) bool {
		return e.Kind == orchestrator.EventPinChanged && e.Host == "web1" && e.Run == run.ID
	}), "the changed key is a security event")
	s.holds(pinned(s.pins(), old), "the pin stays", s.pins())
	refused := s.cli("host", "onboard", "edge/web1", "--wait", "--ssh-identity", s.lab.Key().Path)
	s.holds(refused.code != 0 && len(web1.Logins()) == logins, "host onboard without --rotate refuses it too", refused)

	s.ok("host", "onboard", "--rotate", "edge/web1", "--wait")
	pins := s.pins()
	s.holds(len(pins) == 1 && pins[0].Source == orchestrator.PinRotated && pinned(pins, web1.HostKeyFingerprint(nethost.ED25519)),
		"host onboard --rotate replaces the pin", pins)
	s.ok("provision", "resume", "edge", "--wait")
	resumed := s.run("edge")
	s.holds(resumed.ID == run.ID && slices.Equal(states(resumed), allSucceeded), "the same run goes on to its end after it", resumed)
	s.holds(s.fileOn(web1, "/root/played") == "played\nplayed\n", "its play ran once", s.fileOn(web1, "/root/played"))

	s.rotateHostKeys(web1)
	s.ok("host", "forget", "edge/web1")
	s.holds(len(s.pins()) == 0 && strings.Contains(s.ok("host", "known-hosts", "--retired").stdout, "forgotten"),
		"host forget retires the pin", s.pins())
	s.ok("host", "onboard", "edge/web1", "--wait")
	pins = s.pins()
	s.holds(len(pins) == 1 && pins[0].Source == orchestrator.PinFirstUse && pinned(pins, web1.HostKeyFingerprint(nethost.ED25519)),
		"after it the next contact is a first use", pins)
}

// TestLongGateStatedKey: the inventory says which key the host has.
func TestLongGateStatedKey(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	web1, web2 := s.host("web1"), s.host("web2")
	s.start()
	stated := func(key string) map[string]vars {
		return map[string]vars{"web1": hostVars(web1, vars{"exocomp_host_key": key})}
	}
	s.workspace("edge", stated(web2.PublicHostKey(nethost.ED25519)))
	play := s.playbook("site", rawPlay("tf:edge", "true"))
	r, run := s.provision("edge", play, s.lightly()...)
	s.holdsRefused(r, run, web1, 0, web2.HostKeyFingerprint(nethost.ED25519))
	s.holds(len(s.pins()) == 0, "a key that contradicts exocomp_host_key is not pinned", s.pins())
	forced := s.cli("host", "onboard", "--rotate", "edge/web1", "--wait", "--ssh-identity", s.lab.Key().Path)
	s.holds(forced.code != 0 && len(web1.Logins()) == 0, "nor does --rotate accept it", forced)

	// of the type that would not be chosen on first use
	s.writeHosts("edge", stated(web1.PublicHostKey(nethost.ECDSA)))
	run = s.converge("edge", play, s.lightly()...)
	pins := s.pins()
	s.holds(len(pins) == 1 && pins[0].Source == orchestrator.PinStated && pinned(pins, web1.HostKeyFingerprint(nethost.ECDSA)),
		"the right stated key is pinned as stated, and plays verify it", pins, run)
}

// TestLongGateManInTheMiddle: somebody takes the host's place between its
// onboarding and its play. He lets anybody in; nobody comes.
func TestLongGateManInTheMiddle(t *testing.T) {
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
