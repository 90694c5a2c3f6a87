package orchestrator

import (
	"net"
	"strconv"
	"strings"
	"time"
)

// Pin is a recorded host key. Pins are recorded by address and port and
// referenced by the workspaces' hosts.
type Pin struct {
	Host       string    `json:"host,omitempty"` // address as ansible_host gives it, without brackets
	Port       int       `json:"port"`
	KeyType    string    `json:"key_type"` // ssh-ed25519, ecdsa-sha2-nistp256, ssh-rsa, …
	Key        string    `json:"key"`      // base64, as in an OpenSSH public key line
	SHA256     string    `json:"sha256"`   // fingerprint, `SHA256:<base64>` (ssh-keygen -l)
	Source     PinSource `json:"source"`
	InstanceID string    `json:"instance_id,omitempty"` // exocomp_instance_id at the time, or empty
	AddedAt    time.Time `json:"added_at,omitzero"`
	RetiredAt  time.Time `json:"retired_at,omitzero"` // zero while it is matched
	Retired    string    `json:"retired,omitempty"`   // why it was retired
	Users      []PinUser `json:"users,omitempty"`     // who refers to it
}

// PinUser is a host of a workspace that lives at a pin's address.
type PinUser struct {
	Workspace string `json:"workspace"`
	Host      string `json:"host"`
}

// PinSource says how a key was learnt.
type PinSource string

const (
	PinFirstUse PinSource = "first-use" // scanned on first contact
	PinStated   PinSource = "stated"    // the inventory's exocomp_host_key
	PinRotated  PinSource = "rotated"   // a person confirmed a changed key
)

// RetiredPinRetention is how long a retired pin is kept for people to look at;
// it is never matched.
const RetiredPinRetention = 90 * 24 * time.Hour

// HostPort returns the pin's name in known_hosts (sshd(8), "SSH_KNOWN_HOSTS
// FILE FORMAT"): the bare host on port 22, `[host]:port` elsewhere.
func (p Pin) HostPort() string { return KnownHostsName(p.Host, p.Port) }

// KnownHostsName returns the name under which OpenSSH looks a host up.
func KnownHostsName(host string, port int) string {
	if port == 22 || port == 0 {
		return host
	}
	return "[" + host + "]:" + strconv.Itoa(port)
}

// DialAddress returns host and port as net.Dial takes them.
func DialAddress(host string, port int) string {
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// PinChanges is what a look at hosts, or a person, changes of the pins. The
// ledger makes it as a whole, in the order of the fields.
type PinChanges struct {
	Job    JobID   // that found it, or empty
	By     Peer    // who asked
	Events []Event // facts that change no pin, such as a key that was not accepted
	Retire []PinRetirement
	Rotate []PinRotation
	Add    []Pin // new pins, and known ones that gain users or an instance id
}

// Empty reports whether there is nothing to record.
func (c PinChanges) Empty() bool {
	return len(c.Events)+len(c.Retire)+len(c.Rotate)+len(c.Add) == 0
}

// PinRetirement ends pins for everybody who refers to them.
type PinRetirement struct {
	Pins   []Pin
	Reason string
}

// PinRotation replaces the pins of one address, because a person said so.
type PinRotation struct {
	Old []Pin
	New Pin
}

// PinFilter selects pins; empty fields select every live pin.
type PinFilter struct {
	Workspace      string // only pins that a host of it refers to
	IncludeRetired bool
}

// LeavingPins returns those of pins that hosts of workspace refer to no more,
// once its inventory has just these places, each with the references that end.
func LeavingPins(pins []Pin, workspace string, places []Place) []Pin {
	type seat struct {
		host, address string
		port          int
	}
	stays := make(map[seat]bool, len(places))
	for _, p := range places {
		stays[seat{p.Name, strings.ToLower(p.Address), p.Port}] = true
	}
	var out []Pin
	for _, p := range pins {
		var gone []PinUser
		for _, u := range p.Users {
			if u.Workspace == workspace && !stays[seat{u.Host, strings.ToLower(p.Host), p.Port}] {
				gone = append(gone, u)
			}
		}
		if len(gone) > 0 {
			p.Users = gone
			out = append(out, p)
		}
	}
	return out
}
