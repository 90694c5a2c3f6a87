//go:build long

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/exocomp/exocomp/test/nethost"
)

// TestLongGatePort: an sshd on another port, beside a local host.
func TestLongGatePort(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	web1 := s.hostWith(nethost.HostOptions{Name: "web1", Port: 2222, User: "debian"})
	s.start()
	s.workspace("edge", map[string]vars{
		"web1": hostVars(web1, vars{"ansible_become": true, "log": "/root/played"}),
		"here": {"ansible_connection": "local", "log": "/dev/null"},
	})
	play := s.playbook("site", rawPlay("tf:edge", "id -un >>{{ log }}"))
	run := s.converge("edge", play, "--egress", "2222")
	s.holds(slices.Equal(states(run), allSucceeded), "port 2222 works in every step", run)
	s.holds(slices.Equal(run.Spec.Egress, []int{2222}), "--egress is recorded with the run", run.Spec)
	for _, st := range run.Steps[1:3] {
		h := hostReport(st, "web1")
		s.holds(h != nil && (h.Address == "" || h.Address == web1.HostPort()), fmt.Sprintf("%s reports the host", st.Kind), st.Report)
	}
	shown := s.ok("host", "known-hosts").stdout
	name := fmt.Sprintf("[%s]:2222", web1.Addr())
	s.holds(strings.Contains(shown, "\n"+name+" "+web1.PublicHostKey(nethost.ED25519)+"\n"), "host known-hosts shows [host]:2222", shown)
	s.holds(s.fileOn(web1, "/root/played") == "root\n", "the play ran on the host once, by become", s.fileOn(web1, "/root/played"))
	s.holds(strings.Contains(s.onHost(web1, "runuser", "-u", "exocomp", "--", "sudo", "-n", "id", "-un"), "root"),
		"a host whose user is not root is onboarded by become")

	s.holdsLocal(run, "here")
	view := jsonOf[rpc.InventoryView](s, "inventory", "show", "edge")
	for _, h := range view.Hosts {
		s.holds(h.AdmittedAt.IsZero() == (h.Name == "here"), "admission of "+h.Name, h)
	}
}
