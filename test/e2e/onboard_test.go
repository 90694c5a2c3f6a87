package e2e

import (
	"slices"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/exocomp/exocomp/test/nethost"
)

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
