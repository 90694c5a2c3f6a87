package inventory

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode"
)

// check returns why v cannot be the value of a variable that steers a
// connection, or nothing. It never sees null or a template.
type check func(v value) string

// steering lists the variables that say how a host is reached, which are all
// that an inventory may set of those that Ansible and exocomp read.
var steering = map[string]check{
	"ansible_host":                 checkAddress,
	"ansible_port":                 checkPort,
	"ansible_user":                 checkUser,
	"ansible_connection":           oneOf("ssh", "local"),
	"ansible_python_interpreter":   checkCommand,
	"ansible_remote_tmp":           checkCommand,
	"ansible_shell_type":           checkWord,
	"ansible_become":               checkBool,
	"ansible_become_user":          checkUser,
	"ansible_become_method":        checkWord,
	"ansible_ssh_private_key_file": checkAbsolute,
	"exocomp_login":                oneOf("inventory"),
	"exocomp_host_key":             checkHostKeys,
	"exocomp_instance_id":          checkInstanceID,
}

// instead names the variable or flag to use in place of a refused one.
var instead = map[string]string{
	"ansible_ssh_host":          "write ansible_host",
	"ansible_ssh_port":          "write ansible_port",
	"ansible_ssh_user":          "write ansible_user",
	"ansible_private_key_file":  "write ansible_ssh_private_key_file",
	"ansible_sudo":              "write ansible_become",
	"ansible_sudo_user":         "write ansible_become_user",
	"ansible_su":                "write ansible_become and ansible_become_method",
	"ansible_group_priority":    "nest the groups: the deeper one wins",
	"ansible_ssh_common_args":   "exocomp gives ssh its arguments, so that host keys are verified",
	"ansible_ssh_extra_args":    "exocomp gives ssh its arguments, so that host keys are verified",
	"ansible_ssh_args":          "exocomp gives ssh its arguments, so that host keys are verified",
	"ansible_host_key_checking": "exocomp verifies every host key; state an expected one in exocomp_host_key",
}

// checkVariable adds to m what is wrong with a variable whose name is fit to be
// one.
func checkVariable(name string, v value, p *place, m *mistakes) {
	if reason := badVariable(name, v); reason != "" {
		m.addf(p, "%s", reason)
	}
}

func badVariable(name string, v value) string {
	if !strings.HasPrefix(name, "ansible_") && !strings.HasPrefix(name, "exocomp_") {
		return "" // data: whatever it is, Ansible will not evaluate it
	}
	test, ok := steering[name]
	switch {
	case !ok:
		return refusal(name)
	case v.kind == kindNull:
		return "is null: leave it out, or give it a value"
	case v.kind == kindText && IsTemplate(v.text):
		return "is a template, and an inventory's values are never evaluated: give the value itself"
	}
	return test(v)
}

// refusal says why a name is not on the list, without repeating its value.
func refusal(name string) string {
	if strings.HasPrefix(name, "exocomp_") {
		return "exocomp has no such variable: it reads exocomp_login, exocomp_host_key and exocomp_instance_id"
	}
	for _, word := range []string{"pass", "secret", "token"} {
		if strings.Contains(name, word) {
			return "an inventory is no place for a secret, and there is no vault for passwords yet: log in by a key"
		}
	}
	if hint, ok := instead[name]; ok {
		return "an inventory may not set this: " + hint
	}
	return "an inventory may not set this; of Ansible's own variables it may set ansible_host, _port, _user, " +
		"_connection, _python_interpreter, _remote_tmp, _shell_type, _become, _become_user, _become_method " +
		"and _ssh_private_key_file"
}

// textOf returns the text of a value that must be a non-empty string.
func textOf(v value) (text, reason string) {
	switch {
	case v.kind != kindText:
		return "", fmt.Sprintf("must be a string, not %s", v.kind)
	case v.text == "":
		return "", "is empty: leave it out, or give it a value"
	case v.text[0] == '-':
		return "", "may not begin with a dash: it would be read as an option"
	}
	return v.text, ""
}

// checkAddress takes a DNS name or an IP address, IPv6 without brackets.
func checkAddress(v value) string {
	s, reason := textOf(v)
	if reason != "" {
		return reason
	}
	if strings.Contains(s, ":") {
		addr, err := netip.ParseAddr(s)
		switch {
		case strings.HasPrefix(s, "["):
			return "write an IPv6 address without brackets, and a port in ansible_port"
		case err != nil && strings.Count(s, ":") == 1:
			return "may not hold a port: set ansible_port"
		case err != nil || !isHostname(addr.Zone()) && addr.Zone() != "":
			return fmt.Sprintf("%s is not an address", quote(s))
		}
		return ""
	}
	if len(s) > maxName || !isHostname(s) {
		return fmt.Sprintf("%s is neither a host name nor an address", quote(s))
	}
	return ""
}

func isHostname(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isAlnum(c) && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return s != ""
}

// checkPort takes a number or its decimal spelling.
func checkPort(v value) string {
	if v.kind != kindNumber && v.kind != kindText {
		return fmt.Sprintf("must be a number from 1 to 65535, not %s", v.kind)
	}
	if _, ok := portOf(v.text); !ok {
		return fmt.Sprintf("%s is not a port: it must be a number from 1 to 65535", quote(v.text))
	}
	return ""
}

// portOf reads a port in plain decimal: no sign, no space, no leading zero.
func portOf(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 1 && n <= 65535 && strconv.Itoa(n) == s
}

// checkUser takes a login name. Quotes and blanks would end the argument that
// Ansible builds around it for ssh.
func checkUser(v value) string {
	s, reason := textOf(v)
	if reason != "" {
		return reason
	}
	if strings.IndexFunc(s, func(r rune) bool {
		return !unicode.IsPrint(r) || unicode.IsSpace(r) || strings.ContainsRune("\"'`$;&|<>()", r)
	}) >= 0 {
		return fmt.Sprintf("%s is not a user name", quote(s))
	}
	return ""
}

// checkCommand takes a path, or a command with arguments, that Ansible puts
// into a shell line as it is.
func checkCommand(v value) string {
	s, reason := textOf(v)
	if reason != "" {
		return reason
	}
	if strings.IndexFunc(s, func(r rune) bool {
		return !unicode.IsPrint(r) || strings.ContainsRune("\"'`;&|<>()", r)
	}) >= 0 {
		return "may not hold quotes or characters that steer a shell"
	}
	return ""
}

// checkWord takes the name of a plugin.
func checkWord(v value) string {
	s, reason := textOf(v)
	if reason == "" && !isHostname(s) {
		reason = fmt.Sprintf("%s is not a name", quote(s))
	}
	return reason
}

func checkAbsolute(v value) string {
	s, reason := textOf(v)
	switch {
	case reason != "":
		return reason
	case s[0] != '/':
		return "must be an absolute path on the daemon's host"
	case strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune("\"'", r) }) >= 0:
		return fmt.Sprintf("%s is not a path that ssh can be given", quote(s))
	}
	return ""
}

// booleans are the spellings that Ansible takes (module_utils.parsing.convert_bool).
var booleans = map[string]bool{
	"y": true, "yes": true, "on": true, "1": true, "true": true, "t": true,
	"n": false, "no": false, "off": false, "0": false, "false": false, "f": false,
}

func checkBool(v value) string {
	if _, ok := booleans[strings.ToLower(v.text)]; !ok {
		return "must be true or false"
	}
	return ""
}

func oneOf(words ...string) check {
	return func(v value) string {
		for _, w := range words {
			if v.kind == kindText && v.text == w {
				return ""
			}
		}
		return "must be " + strings.Join(words, " or ")
	}
}

func checkInstanceID(v value) string {
	if v.kind == kindNumber || v.kind == kindText && strings.TrimSpace(v.text) != "" {
		return ""
	}
	return "must be a string or a number that is not empty"
}
