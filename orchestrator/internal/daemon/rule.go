package daemon

import (
	"path/filepath"
	"slices"

	"github.com/exocomp/exocomp/orchestrator"
)

// PlaybookRule is what exocomp.hcl says belongs to a playbook, by its path, for
// every playbook run and every fire of a schedule that names it.
type PlaybookRule struct {
	Path          string   // absolute, as the person who submits it has it
	Egress        []int    // TCP ports besides 22
	SSHIdentities []string // private key files on the daemon's host, absolute
}

// rule is the form of a rule in exocomp.hcl.
type rule struct {
	Path        string   `hcl:"path,label"`
	Egress      []int    `hcl:"egress,optional"`
	SSHIdentity []string `hcl:"ssh_identity,optional"`
}

// validateRules reports every mistake in the rules together.
func validateRules(rules []PlaybookRule) error {
	var m orchestrator.Mistakes
	for i, r := range rules {
		if !filepath.IsAbs(r.Path) {
			m.Addf("playbook %q: the path is not absolute", r.Path)
		}
		if slices.ContainsFunc(rules[:i], func(o PlaybookRule) bool { return filepath.Clean(o.Path) == filepath.Clean(r.Path) }) {
			m.Addf("playbook %q has two rules: put all that belongs to it into one", r.Path)
		}
		for _, p := range r.Egress {
			if p < 1 || p > 65535 {
				m.Addf("playbook %q: egress %d is not a TCP port (1 to 65535)", r.Path, p)
			}
		}
		for _, f := range r.SSHIdentities {
			if !filepath.IsAbs(f) {
				m.Addf("playbook %q: ssh_identity %q is not an absolute path", r.Path, f)
			}
		}
	}
	return m.Err()
}

// grant adds to a playbook run what the rule of its path grants.
func grant(rules []PlaybookRule, spec *orchestrator.JobSpec) {
	path := filepath.Clean(spec.Play.Playbook.Path)
	i := slices.IndexFunc(rules, func(r PlaybookRule) bool { return filepath.Clean(r.Path) == path })
	if i < 0 {
		return
	}
	play := *spec.Play
	play.SSHIdentities = union(play.SSHIdentities, rules[i].SSHIdentities)
	spec.Play, spec.Egress = &play, union(spec.Egress, rules[i].Egress)
}

// union returns what is in either list, once, the first list's first.
func union[T comparable](lists ...[]T) []T {
	var out []T
	for _, list := range lists {
		for _, v := range list {
			if !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	return out
}
