package inventory

import (
	"fmt"
	"strings"
	"unicode"
)

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// notAHost returns why name cannot be a host's, or nothing.
func notAHost(name, workspace string) string {
	switch {
	case name == "":
		return "a host name may not be empty"
	case name == groupAll || name == groupUngrouped || name == groupTofu:
		return fmt.Sprintf("no host may be called %s, which names a group", name)
	case name == workspace:
		return "a host named like its workspace would narrow every run of the workspace to itself: choose another name"
	case strings.ContainsAny(name, "[]"):
		return "ranges are not expanded: name each host"
	case strings.Contains(name, ":"):
		return "a host name may not hold a port or an IPv6 address: choose a name and set ansible_host and ansible_port"
	case name[0] == '-':
		return "a host name may not begin with a dash"
	case name == "." || name == "..":
		return "this is a directory, not a host name"
	case len(name) > maxName:
		return fmt.Sprintf("a host name may have %d characters", maxName)
	}
	for i := range len(name) {
		if c := name[i]; !isAlnum(c) && c != '.' && c != '_' && c != '-' {
			return "a host name may hold letters, digits, dots, dashes and underscores (A-Z a-z 0-9 . - _)"
		}
	}
	return ""
}

// groupName reports whether a group of that name may stand below parent, and
// adds the mistake where not.
func (b *builder) groupName(name string, p *place, parent *group) bool {
	top := parent == nil || parent.name == groupAll
	switch {
	case name == "":
		b.m.addf(p, "a group name may not be empty")
	case name == groupAll && parent != nil:
		b.m.addf(p, "all is the root of the tree and cannot stand below another group")
	case name == groupUngrouped && !top:
		b.m.addf(p, "ungrouped can stand only at the top or below all")
	case name == groupTofu:
		b.m.addf(p, "no group may be called tf: it stands for the workspaces, as in tf:%s", b.inv.Workspace)
	case name == "localhost":
		b.m.addf(p, "no group may be called localhost, which names the control node")
	case name[0] == '-':
		b.m.addf(p, "a group name may not begin with a dash")
	case len(name) > maxName:
		b.m.addf(p, "a group name may have %d bytes", maxName)
	case strings.IndexFunc(name, notInGroupName) >= 0:
		b.m.addf(p, "a group name may hold letters, digits, dots, dashes and underscores: "+
			"anything else has a meaning in host patterns")
	default:
		return true
	}
	return false
}

func notInGroupName(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-' && r != '.'
}

// keywords are Python's, which Ansible refuses as names of variables.
var keywords = set("False None True and as assert async await break class continue def del elif else except " +
	"finally for from global if import in is lambda nonlocal not or pass raise return try while with yield")

// magic variables are set by Ansible itself, whatever the inventory says.
var magic = set("group_names groups hostvars inventory_dir inventory_file inventory_hostname " +
	"inventory_hostname_short omit play_hosts playbook_dir vars")

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// notAVariable returns why name cannot be a variable's, or nothing.
func notAVariable(name string) string {
	if name == "" {
		return "a variable name may not be empty"
	}
	for i := range len(name) {
		if c := name[i]; c != '_' && (!isAlnum(c) || i == 0 && '0' <= c && c <= '9') {
			return "a variable name holds letters, digits and underscores (A-Z a-z 0-9 _) and begins with no digit"
		}
	}
	switch {
	case keywords[name]:
		return "a keyword of Python cannot name a variable"
	case magic[name]:
		return "Ansible sets this variable itself"
	}
	return ""
}
