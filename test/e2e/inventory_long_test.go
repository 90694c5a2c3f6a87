//go:build long

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/test/nethost"
)

// TestLongGateInventoryVerifiesPins: stock Ansible in the layout knows the pins, and
// no key else.
func TestLongGateInventoryVerifiesPins(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	web1 := s.hostWith(nethost.HostOptions{Name: "web1", Port: 2222})
	s.start()
	s.workspace("edge", map[string]vars{"web1": hostVars(web1)})
	dir := s.linked("tf:edge")
	ssh := slices.Concat([]string{"ssh"}, s.linkedSSHArgs(dir), []string{"-o", "ControlPath=none", "-o", "BatchMode=yes",
		"-i", s.lab.Key().Path, "-p", "2222", web1.User() + "@" + web1.Addr(), "true"})
	greet := func(env ...string) result {
		t.Helper()
		defer s.endMasters()
		return s.stock(dir, env, "ansible", "-i", "exocomp-inventory", "tf:edge", "--private-key", s.lab.Key().Path, "-m", "raw", "-a", "echo hello $((6 * 7))")
	}
	unpinned := s.stock(dir, nil, ssh...)
	s.holds(unpinned.code != 0 && len(web1.Logins()) == 0, "a host without a pin is not logged in to", unpinned, web1.Logins())
	s.converge("edge", s.playbook("site", rawPlay("tf:edge", "true")), append(s.lightly(), "--egress", "2222")...)
	known := greet()
	s.holds(known.code == 0 && strings.Contains(known.stdout, "hello 42"), "a pinned one is, on another port too: the daemon is asked at each connection", known)

	s.rotateHostKeys(web1)
	logins := len(web1.Logins())
	refused := greet("ANSIBLE_HOST_KEY_CHECKING=False")
	s.holds(refused.code != 0 && strings.Contains(refused.stdout, "UNREACHABLE") &&
		strings.Contains(strings.ToLower(refused.stdout), "host key verification failed") && len(web1.Logins()) == logins,
		"a wrong host key is refused, whatever Ansible's environment says of host key checking", refused)
	s.ok("host", "onboard", "--rotate", "edge/web1", "--wait", "--ssh-identity", s.lab.Key().Path)
	rotated := s.stock(dir, nil, ssh...)
	s.holds(rotated.code == 0, "a rotated pin counts at once", rotated)
	s.ok("host", "forget", "edge/web1")
	forgotten := s.stock(dir, nil, ssh...)
	s.holds(forgotten.code != 0, "and a forgotten one no more", forgotten)
	s.stop()
	away := s.stock(dir, nil, ssh...)
	s.holds(away.code != 0 && strings.Contains(away.stderr, "no daemon"), "with the daemon gone nobody is trusted", away)
}
