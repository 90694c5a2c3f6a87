package inventory

import (
	"fmt"
	"slices"

	"github.com/exocomp/exocomp/orchestrator"
)

// The connections that an inventory may ask for.
const (
	ConnectionSSH   = "ssh"
	ConnectionLocal = "local"
)

// defaultPort is ssh's.
const defaultPort = 22

// Host is what Ansible makes of one host: its variables after inheritance, and
// those of them that exocomp acts upon.
type Host struct {
	Name              string
	Address           string   // ansible_host, else the name; IPv6 without brackets
	Port              int      // ansible_port, else 22
	User              string   // ansible_user, or empty
	Connection        string   // ConnectionSSH or ConnectionLocal
	PrivateKeyFile    string   // ansible_ssh_private_key_file, or empty
	PythonInterpreter string   // ansible_python_interpreter, or empty
	Groups            []string // sorted, without `all`, `ungrouped` and `tf`
	Login             orchestrator.Login
	HostKeys          []string // stated keys as `type base64`, or none
	InstanceID        string   // exocomp_instance_id, or empty
	Become            bool
	// Vars holds all variables, as encoding/json decodes them with UseNumber.
	// Lists and maps in it are shared between hosts: do not change them.
	Vars map[string]any
}

// Local reports whether the host is the control node itself, which is neither
// waited for nor onboarded.
func (h Host) Local() bool { return h.Connection == ConnectionLocal }

// apply notes a variable that exocomp acts upon.
func (h *Host) apply(name string, v value) {
	switch name {
	case "ansible_host":
		h.Address = v.text
	case "ansible_port":
		h.Port, _ = portOf(v.text)
	case "ansible_user":
		h.User = v.text
	case "ansible_connection":
		h.Connection = v.text
	case "ansible_ssh_private_key_file":
		h.PrivateKeyFile = v.text
	case "ansible_python_interpreter":
		h.PythonInterpreter = v.text
	case "ansible_become":
		h.Become = truth(v)
	case "exocomp_login":
		h.Login = orchestrator.LoginInventory
	case "exocomp_host_key":
		h.HostKeys = hostKeysOf(v)
	case "exocomp_instance_id":
		h.InstanceID = v.text
	}
}

// Ungranted says of each host which key file it names that is not among
// granted: only a person lets a job use one.
func Ungranted(hosts []Host, granted []string) []string {
	var out []string
	for _, h := range hosts {
		f := h.PrivateKeyFile
		if f == "" || h.Local() || slices.Contains(granted, f) {
			continue
		}
		out = append(out, fmt.Sprintf("host %s names the key file %s and nobody granted it: add --ssh-identity %s", h.Name, f, f))
	}
	return out
}

// Places returns where the hosts are to be found.
func Places(hosts []Host) []orchestrator.Place {
	out := make([]orchestrator.Place, 0, len(hosts))
	for _, h := range hosts {
		p := orchestrator.Place{Name: h.Name, InstanceID: h.InstanceID}
		if !h.Local() {
			p.Address, p.Port = h.Address, h.Port
		}
		out = append(out, p)
	}
	return out
}
