package e2e

import (
	"slices"
	"strings"
)

// localHosts is an inventory of local hosts of these names.
func localHosts(names ...string) map[string]vars {
	hosts := map[string]vars{}
	for _, n := range names {
		hosts[n] = thisMachine()["here"]
	}
	return hosts
}

// visits is a file to which each host of a play writes its name.
type visits struct {
	s    *site
	path string
	seen int
}

func (s *site) visits(name string) *visits {
	return &visits{s: s, path: s.writeFile(name+".visits", "")}
}

func (v *visits) line() string { return "echo {{ inventory_hostname }} >> " + v.path }

// since fails the test unless exactly these hosts were visited since the last
// call, each once.
func (v *visits) since(what string, want ...string) {
	v.s.t.Helper()
	all := strings.Fields(v.s.read(v.path))
	got := slices.Sorted(slices.Values(all[v.seen:]))
	v.seen = len(all)
	v.s.holds(slices.Equal(got, want), what, got)
}
