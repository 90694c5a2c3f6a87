//go:build long

package ansible

import (
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/seeds"
	"github.com/exocomp/exocomp/test/nethost"
	"github.com/exocomp/exocomp/test/nethost/nethosttest"
)

func TestLongOnboardMakesTheAutomationUserOnce(t *testing.T) {
	lab := nethosttest.Lab(t)
	b := newBench(t, lab)
	hosts := map[string]*nethost.Host{
		"byroot": nethosttest.Host(t, lab, nethost.HostOptions{Name: "byroot"}),
		"bysudo": nethosttest.Host(t, lab, nethost.HostOptions{Name: "bysudo", User: "debian", Port: 2222}),
	}

	first := b.onboard(t, hosts, nil)
	if first.err != nil {
		t.Fatal(first.err)
	}
	for name, h := range hosts {
		if r := reportOf(t, first, name); r.State != orchestrator.HostChanged {
			t.Errorf("%s is %s after its first onboarding, want changed", name, r.State)
		}
		wantOnHost(t, h, b.fleet+"\n", "cat", "/home/exocomp/.ssh/authorized_keys")
		wantOnHost(t, h, "exocomp 600\n", "stat", "-c", "%U %a", "/home/exocomp/.ssh/authorized_keys")
		wantOnHost(t, h, "exocomp 700\n", "stat", "-c", "%U %a", "/home/exocomp/.ssh")
		wantOnHost(t, h, "root root 440\n", "stat", "-c", "%U %G %a", "/etc/sudoers.d/exocomp")
		wantOnHost(t, h, "/bin/bash\n", "sh", "-c", "getent passwd exocomp | cut -d: -f7")
		wantOnHost(t, h, "*\n", "sh", "-c", "getent shadow exocomp | cut -d: -f2")
	}

	second := b.onboard(t, hosts, nil)
	if second.err != nil {
		t.Fatal(second.err)
	}
	for name := range hosts {
		if r := reportOf(t, second, name); r.State != orchestrator.HostOK || r.Changed != 0 {
			t.Errorf("%s is %s with %d changes after its second onboarding, want ok with none", name, r.State, r.Changed)
		}
	}

	before := loginsOf(hosts, "exocomp")
	if r := b.verify(t, seeds.Verify, "exocomp", hosts); r.err != nil {
		t.Fatal(r.err)
	}
	if n := loginsOf(hosts, "exocomp") - before; n != len(hosts) {
		t.Errorf("verify logged in %d times as the automation user, want once a host", n)
	}
}

// Root logs in to a machine without sudo, of which the inventory even asks to
// become root. Ansible's apt module needs python3-apt on the machine.
func TestLongOnboardInstallsSudoWhereMissing(t *testing.T) {
	lab := nethosttest.Lab(t)
	b := newBench(t, lab)
	h := nethosttest.Host(t, lab, nethost.HostOptions{Name: "web1"})
	if _, err := h.Exec(t.Context(), "/usr/bin/python3", "-c", "import apt"); err != nil {
		t.Fatalf("the package python3-apt is not installed on this machine: %v", err)
	}
	if _, err := h.Exec(t.Context(), "bash", "-ec", takeSudoAway); err != nil {
		t.Fatal(err)
	}
	hosts := map[string]*nethost.Host{"web1": h}
	if r := b.onboard(t, hosts, map[string]map[string]any{"web1": {"ansible_become": true}}); r.err != nil {
		t.Fatal(r.err)
	}
	if r := b.verify(t, seeds.Verify, "exocomp", hosts); r.err != nil {
		t.Fatal(r.err)
	}
}

func TestLongVerifyFailsWithoutSudo(t *testing.T) {
	lab := nethosttest.Lab(t)
	b := newBench(t, lab)
	hosts := map[string]*nethost.Host{
		"web1": nethosttest.Host(t, lab, nethost.HostOptions{Name: "web1", User: "debian"}),
	}
	if r := b.verify(t, seeds.VerifyLogin, "debian", hosts); r.err != nil {
		t.Fatalf("the inventory's user logs in, and the verdict is: %v", r.err)
	}
	if r := b.verify(t, seeds.Verify, "debian", hosts); r.err != nil {
		t.Fatalf("the user has sudo, and the verdict is: %v", r.err)
	}
	wantOnHost(t, hosts["web1"], "", "rm", "/etc/sudoers.d/debian")
	r := b.verify(t, seeds.Verify, "debian", hosts)
	wantCode(t, r.err, orchestrator.CodeFailed, "Log in and become root without a password", "web1", "password is required")
	r = b.verify(t, seeds.Verify, "exocomp", hosts)
	wantCode(t, r.err, orchestrator.CodeFailed, "could not reach web1", "Permission denied")
}

func TestLongOnboardRefusesALinkInPlaceOfTheKeys(t *testing.T) {
	lab := nethosttest.Lab(t)
	b := newBench(t, lab)
	h := nethosttest.Host(t, lab, nethost.HostOptions{Name: "web1"})
	wantOnHost(t, h, "", "sh", "-c", "useradd -m exocomp && install -d -o exocomp -m 700 /home/exocomp/.ssh && ln -s /etc/motd /home/exocomp/.ssh/authorized_keys")
	r := b.onboard(t, map[string]*nethost.Host{"web1": h}, nil)
	wantCode(t, r.err, orchestrator.CodeFailed, `task "Refuse links in place of the user's keys" failed on web1`, "/home/exocomp/.ssh/authorized_keys is a symbolic link")
}
