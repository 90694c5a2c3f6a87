package e2e

import (
	"slices"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/exocomp/exocomp/test/nethost"
)

// TestGateOnboardPlaybook: an onboarding playbook of one's own gets the whole
// fleet key, and its hosts keep the inventory's login.
func TestGateOnboardPlaybook(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	web1 := s.host("web1")
	s.start()
	s.workspace("edge", map[string]vars{"web1": hostVars(web1)})
	own := s.playbook("own", `- hosts: tf:edge
  gather_facts: false
  tasks:
    - name: Keep what was given
      ansible.builtin.copy:
        content: "{{ exocomp_user }}\n{{ exocomp_fleet_pubkey }}\n"
        dest: /root/given
        mode: "0600"
`)
	play := s.playbook("site", rawPlay("tf:edge", "id -un >>/root/played"))
	run := s.converge("edge", play, "--onboard-playbook", own)
	fleet := s.ok("host", "fleet-key").stdout
	s.holds(s.fileOn(web1, "/root/given") == "exocomp\n"+fleet, "--onboard-playbook gets exocomp_user and exocomp_fleet_pubkey whole",
		s.fileOn(web1, "/root/given"), fleet)
	s.holds(run.Spec.OnboardPlaybook != nil && run.Spec.OnboardPlaybook.Path == own, "the run records the playbook", run.Spec)
	s.holdsInventoryLogin(web1, "edge", "web1")
	s.holds(s.fileOn(web1, "/root/played") == "root\n", "the play logs in as the inventory says", s.fileOn(web1, "/root/played"))
}

// lightly is the flag for an onboarding that only logs in, for gates that are
// about something else: the seeded one is most of a chain's time.
func (s *site) lightly() []string {
	s.t.Helper()
	return []string{"--onboard-playbook", s.playbook("lightly", rawPlay("all", "true"))}
}

// holdsInventoryLogin: a host is admitted, and only its inventory's user has
// ever logged in to it.
func (s *site) holdsInventoryLogin(h *nethost.Host, workspace, name string) {
	s.t.Helper()
	logins := h.Logins()
	s.holds(len(logins) > 0 && !slices.ContainsFunc(logins, func(l nethost.Login) bool {
		return l.User != h.User() || l.Fingerprint != s.lab.Key().Fingerprint
	}), "every login to "+name+" is the inventory's", logins)
	view := jsonOf[rpc.InventoryView](s, "inventory", "show", workspace)
	i := slices.IndexFunc(view.Hosts, func(x rpc.InventoryHost) bool { return x.Name == name })
	s.holds(i >= 0 && view.Hosts[i].Login == orchestrator.LoginInventory && !view.Hosts[i].AdmittedAt.IsZero(),
		name+" is admitted with its inventory's login", view.Hosts)
}
