package hostkeys

import (
	"encoding/base64"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/exocomp/exocomp/orchestrator"
)

// HostWant is a host whose key is to be pinned or held against its pin.
type HostWant struct {
	Workspace  string
	Name       string
	Host       string // its address; IPv6 without brackets
	Port       int
	StatedKeys []string // exocomp_host_key as `type base64`: it must offer one of them; or none
	InstanceID string   // exocomp_instance_id, or empty
}

// ref is how commands name the host.
func (w HostWant) ref() string { return w.Workspace + "/" + w.Name }

func (w HostWant) user() orchestrator.PinUser {
	return orchestrator.PinUser{Workspace: w.Workspace, Host: w.Name}
}

// accepts reports whether key is not against what the inventory states.
func (w HostWant) accepts(key ssh.PublicKey) bool {
	return len(w.StatedKeys) == 0 || slices.Contains(w.StatedKeys, keyLine(key))
}

// stated returns the fingerprints that the inventory states, for a sentence.
func (w HostWant) stated() string {
	stated := make([]string, len(w.StatedKeys))
	for i, line := range w.StatedKeys {
		stated[i] = fingerprintOf(line)
	}
	return strings.Join(stated, " or ")
}

// place is an address and port, the unit of scanning and pinning.
type place struct {
	host string // lower case
	port int
}

func placeOf(host string, port int) place { return place{strings.ToLower(host), port} }

func (p place) String() string { return orchestrator.DialAddress(p.host, p.port) }

// site is everything that is known about one place. Hosts of different
// workspaces, or two names of one machine, share it.
type site struct {
	place place
	wants []wanted
	pins  []orchestrator.Pin // matched ones
}

// wanted is a HostWant with its index among all.
type wanted struct {
	HostWant
	index int
}

// sites groups wants by place, in the order of their first appearance, with
// the matched pins of each.
func sites(wants []HostWant, pins []orchestrator.Pin) []*site {
	var all []*site
	at := map[place]*site{}
	for i, w := range wants {
		p := placeOf(w.Host, w.Port)
		if at[p] == nil {
			at[p] = &site{place: p}
			all = append(all, at[p])
		}
		at[p].wants = append(at[p].wants, wanted{w, i})
	}
	for _, pin := range pins {
		if s := at[placeOf(pin.Host, pin.Port)]; s != nil && pin.RetiredAt.IsZero() {
			s.pins = append(s.pins, pin)
		}
	}
	return all
}

// PinsOf returns the matched pins among pins at the places of hosts.
func PinsOf(hosts []HostWant, pins []orchestrator.Pin) []orchestrator.Pin {
	var of []orchestrator.Pin
	for _, s := range sites(hosts, pins) {
		of = append(of, s.pins...)
	}
	return of
}

// rebuilt reports whether the machine was replaced by the word of its
// inventories: every host that refers to a pin here is wanted, with another
// instance id than the pin's. Hosts that are not wanted now keep the pin.
func (s *site) rebuilt() bool {
	for _, pin := range s.pins {
		if pin.InstanceID == "" || len(pin.Users) == 0 {
			return false
		}
		for _, u := range pin.Users {
			i := slices.IndexFunc(s.wants, func(w wanted) bool { return w.user() == u })
			if i < 0 || s.wants[i].InstanceID == "" || s.wants[i].InstanceID == pin.InstanceID {
				return false
			}
		}
	}
	return len(s.pins) > 0
}

// types returns the key types to ask for: those that are pinned; where nothing
// is, or a new key is to be accepted, those that the inventories state; else
// nil.
func (s *site) types(rotate bool) []string {
	stated := s.statedTypes()
	if len(s.pins) == 0 || s.rebuilt() || (rotate && len(stated) > 0) {
		return stated
	}
	var types []string
	for _, p := range s.pins {
		types = append(types, p.KeyType)
	}
	return inOrder(types)
}

func (s *site) statedTypes() []string {
	var types []string
	for _, w := range s.wants {
		for _, line := range w.StatedKeys {
			keyType, _, _ := strings.Cut(line, " ")
			types = append(types, keyType)
		}
	}
	return inOrder(types)
}

// inOrder returns types sorted by preference, each once.
func inOrder(types []string) []string {
	rank := func(t string) int {
		if t == ssh.KeyAlgoRSA {
			return len(preferred)
		}
		return slices.Index(preferred, t)
	}
	slices.SortFunc(types, func(a, b string) int { return rank(a) - rank(b) })
	return slices.Compact(types)
}

// keyLine returns key as an inventory states it: `type base64`.
func keyLine(key ssh.PublicKey) string {
	return key.Type() + " " + base64.StdEncoding.EncodeToString(key.Marshal())
}

// fingerprintOf returns the fingerprint of a `type base64` line, or the line
// where it is no key.
func fingerprintOf(line string) string {
	_, text, _ := strings.Cut(line, " ")
	blob, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return line
	}
	key, err := ssh.ParsePublicKey(blob)
	if err != nil {
		return line
	}
	return ssh.FingerprintSHA256(key)
}

// newPin returns the pin of key at the site, referred to by wants.
func (s *site) newPin(key ssh.PublicKey, wants []wanted) orchestrator.Pin {
	pin := orchestrator.Pin{
		Host:    s.place.host,
		Port:    s.place.port,
		KeyType: key.Type(),
		Key:     base64.StdEncoding.EncodeToString(key.Marshal()),
		SHA256:  ssh.FingerprintSHA256(key),
		Source:  orchestrator.PinFirstUse,
	}
	for _, w := range wants {
		pin.Users = append(pin.Users, w.user())
		if len(w.StatedKeys) > 0 {
			pin.Source = orchestrator.PinStated
		}
		if pin.InstanceID == "" {
			pin.InstanceID = w.InstanceID
		}
	}
	return pin
}
