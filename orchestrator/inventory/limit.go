package inventory

import (
	"slices"
	"strings"
)

// Limited returns the hosts that a --limit of ansible-playbook leaves, where it
// is made of names of hosts and groups alone, joined by commas or colons, with !
// and & before them. Of others (wildcards, ranges, files) only Ansible knows what
// they mean: ok is then false and every host returned.
func Limited(hosts []Host, limit string) (left []Host, ok bool) {
	var among, within, without []string
	by := ":"
	if strings.Contains(limit, ",") {
		by = ","
	}
	for term := range strings.SplitSeq(limit, by) {
		term = strings.TrimSpace(term)
		name := strings.TrimLeft(term, "!&")
		if strings.Trim(name, nameLetters) != "" || name == "ungrouped" || len(term)-len(name) > 1 {
			return hosts, false
		}
		switch {
		case name == "":
		case term[0] == '!':
			without = append(without, name)
		case term[0] == '&':
			within = append(within, name)
		default:
			among = append(among, name)
		}
	}
	for _, h := range hosts {
		in := func(name string) bool { return name == "all" || name == h.Name || slices.Contains(h.Groups, name) }
		if (len(among) == 0 || slices.ContainsFunc(among, in)) && !slices.ContainsFunc(without, in) &&
			!slices.ContainsFunc(within, func(name string) bool { return !in(name) }) {
			left = append(left, h)
		}
	}
	return left, true
}

// nameLetters are what names of hosts and groups are made of.
const nameLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
