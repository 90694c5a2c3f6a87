package nethost

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// automationUser is the account that onboarding makes. This machine may be a
// host of its own fleet and have one; a test host must not start with it.
const automationUser = "exocomp"

// firstUID and lastUID bound the ids of people's accounts (login.defs).
const (
	firstUID = 1000
	lastUID  = 59999
)

// accounts are the four files of the account database.
type accounts struct {
	passwd, shadow, group, gshadow []string
}

// systemAccounts returns this machine's accounts without its people, without
// the automation user, and without anybody's password.
func systemAccounts() (*accounts, error) {
	passwd, err := readLines("/etc/passwd")
	if err != nil {
		return nil, err
	}
	group, err := readLines("/etc/group")
	if err != nil {
		return nil, err
	}
	a := &accounts{}
	kept := map[string]bool{}
	for _, line := range passwd {
		f := strings.Split(line, ":")
		if len(f) != 7 || !isSystem(f[0], f[2]) {
			continue
		}
		kept[f[0]] = true
		if f[0] == "root" {
			f[5], f[6] = "/root", "/bin/bash"
		}
		f[1] = "x"
		a.passwd = append(a.passwd, strings.Join(f, ":"))
		a.shadow = append(a.shadow, shadowLine(f[0]))
	}
	for _, line := range group {
		f := strings.Split(line, ":")
		if len(f) != 4 || !isSystem(f[0], f[2]) {
			continue
		}
		var members []string
		for m := range strings.SplitSeq(f[3], ",") {
			if kept[m] {
				members = append(members, m)
			}
		}
		f[1], f[3] = "x", strings.Join(members, ",")
		a.group = append(a.group, strings.Join(f, ":"))
		a.gshadow = append(a.gshadow, f[0]+":*::"+f[3])
	}
	return a, nil
}

// add makes an account with a group of its own and returns its id.
func (a *accounts) add(name string) int {
	id := firstUID
	for _, line := range a.passwd {
		f := strings.Split(line, ":")
		if uid, err := strconv.Atoi(f[2]); err == nil && uid >= id && uid <= lastUID {
			id = uid + 1
		}
	}
	a.passwd = append(a.passwd, fmt.Sprintf("%s:x:%d:%d::/home/%s:/bin/bash", name, id, id, name))
	a.shadow = append(a.shadow, shadowLine(name))
	a.group = append(a.group, fmt.Sprintf("%s:x:%d:", name, id))
	a.gshadow = append(a.gshadow, name+":*::")
	return id
}

// people returns the names of the ordinary accounts in a passwd file.
func people(passwd string) []string {
	var names []string
	for line := range strings.SplitSeq(passwd, "\n") {
		f := strings.Split(line, ":")
		if len(f) != 7 {
			continue
		}
		if uid, err := strconv.Atoi(f[2]); err == nil && (uid >= firstUID && uid <= lastUID || f[0] == automationUser) {
			names = append(names, f[0])
		}
	}
	return names
}

func isSystem(name, id string) bool {
	n, err := strconv.Atoi(id)
	return err == nil && name != automationUser && (n < firstUID || n > lastUID)
}

// shadowLine gives an account no password. A star, not an exclamation mark:
// without PAM sshd takes the latter for a locked account and refuses its keys.
func shadowLine(name string) string { return name + ":*:19000:0:99999:7:::" }

func readLines(path string) ([]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n"), nil
}
