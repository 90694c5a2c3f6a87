package e2e

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/test/nethost"
)

// TestGateSilentHost: of three hosts one never answers and one accepts but says
// nothing. Step 2 fails within its bound and names those two.
func TestGateSilentHost(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	web1, dead, mute := s.host("web1"), s.host("dead"), s.host("mute")
	if err := dead.LinkDown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := mute.PauseSSHD(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.start()
	s.workspace("edge", map[string]vars{"web1": hostVars(web1), "dead": hostVars(dead), "mute": hostVars(mute)})
	play := s.playbook("site", rawPlay("tf:edge", "touch /played"))

	const bound = 4 * time.Second
	r, run := s.provision("edge", play, "--ssh-wait", bound.String())
	wait := run.Steps[1]
	took := wait.FinishedAt.Sub(wait.StartedAt)
	s.holds(r.code == 1 && wait.State == orchestrator.StepFailed, "a host that never answers fails step 2, exit code 1", r)
	s.holds(took >= bound && took <= bound+time.Second, "step 2 failed at its bound, within a second, by the ledger's times", took)
	s.holds(slices.Equal(states(run), []orchestrator.StepState{
		orchestrator.StepSucceeded, orchestrator.StepFailed, orchestrator.StepBlocked, orchestrator.StepBlocked,
	}), "steps 3 and 4 stay blocked", states(run))
	said := wait.Failure.Message
	s.holds(strings.Contains(said, "2 of 3 host(s)") && strings.Contains(said, "dead at "+dead.HostPort()) &&
		strings.Contains(said, "mute at "+mute.HostPort()) && !strings.Contains(said, "web1"),
		"the dead hosts are named, the live one is not", said)
	status := s.ok("provision", "status", "edge").stdout
	s.holds(strings.Contains(status, "host  dead: waiting at "+dead.HostPort()) && !strings.Contains(status, "host  web1"),
		"status names them with their last error", status)
	for host, state := range map[string]orchestrator.HostState{
		"web1": orchestrator.HostReady, "dead": orchestrator.HostWaiting, "mute": orchestrator.HostWaiting,
	} {
		h := hostReport(wait, host)
		s.holds(h != nil && h.State == state, fmt.Sprintf("the report says that %s is %s", host, state), h)
	}
	s.holds(len(web1.Logins()) == 0 && len(s.pins()) == 0, "nothing was pushed to the live host, and nothing pinned", web1.Logins())
}

// TestGateLateHost: neither the proxy nor the sshd behind it is there when the
// wait begins.
func TestGateLateHost(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	web1 := s.hostWith(nethost.HostOptions{Name: "web1", LateSSHD: true})
	address, err := s.lab.VacantAddr()
	if err != nil {
		t.Fatal(err)
	}
	s.start()
	s.workspace("edge", map[string]vars{"web1": hostVars(web1, vars{"ansible_host": address})})
	play := s.playbook("site", rawPlay("tf:edge", "echo played >/root/played"))
	id := string(s.submit("edge", play, append(s.lightly(), "--ssh-wait", "2m")...))
	s.awaitEvent("that step 2 has started", func(e orchestrator.Event) bool {
		return e.Kind == orchestrator.EventStepStarted && e.Step == orchestrator.StepSSHWait
	}, "--run", id)

	proxy, err := s.lab.Proxy(t.Context(), net.JoinHostPort(address, "22"), web1.HostPort())
	if err != nil {
		t.Fatal(err)
	}
	s.await("a connection through the late proxy", func() bool { return proxy.Accepted() > 0 })
	s.holds(s.run(id).Steps[1].State == orchestrator.StepRunning, "a proxy that accepts without a banner is not taken for a host", s.run(id))
	up := time.Now()
	if err := web1.StartSSHD(t.Context()); err != nil {
		t.Fatal(err)
	}
	run := s.awaitRun(id)
	s.holds(slices.Equal(states(run), allSucceeded), "a late sshd behind a late proxy is waited for", run)
	ready := hostReport(run.Steps[1], "web1")
	s.holds(run.Steps[1].FinishedAt.After(up) && ready != nil && ready.State == orchestrator.HostReady && ready.Took > 0,
		"step 2 ended after the sshd came up and says how long it took", run.Steps[1])
	pins := s.pins()
	s.holds(len(pins) == 1 && pins[0].Host == address, "the pin is of the address that the inventory names", pins)
	s.holds(s.fileOn(web1, "/root/played") == "played\n", "the play ran through the proxy, as root", s.fileOn(web1, "/root/played"))
}
