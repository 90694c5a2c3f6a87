package hostkeys

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/exocomp/exocomp/orchestrator"
)

// Decision is what the scans mean, given the pins.
type Decision struct {
	Add     []orchestrator.Pin // new pins, and known ones to which another host refers from now on
	Retire  []orchestrator.PinRetirement
	Rotate  []orchestrator.PinRotation
	Changed []ChangedKey
	Refused []RefusedKey
	Hosts   []HostVerdict // one for each want, in their order
}

// ChangedKey is a host where a scan met another key than the pinned one.
type ChangedKey struct {
	Want HostWant
	Pin  orchestrator.Pin
	Seen string // the offered key's SHA256 fingerprint
}

// RefusedKey is a host where a scan met another key than those that its
// inventory states.
type RefusedKey struct {
	Want HostWant
	Seen string // the offered key's SHA256 fingerprint
}

// HostVerdict is one host's part of a decision.
type HostVerdict struct {
	Want    HostWant
	Message string // what was found, where Err is nil
	Changed bool   // Err is about another key than the pinned one: rotating accepts it
	Err     error
}

// Decide holds each want's scan against the pins. It is a pure function: scans
// holds a result for the place of every want, and pins those of these places,
// whoever refers to them. With rotate, another key than the pinned one is
// accepted; one that the inventory's stated keys contradict never is.
func Decide(wants []HostWant, pins []orchestrator.Pin, scans []Result, rotate bool) Decision {
	d := Decision{Hosts: make([]HostVerdict, len(wants))}
	results := map[place]Result{}
	for _, r := range scans {
		results[placeOf(r.Target.Host, r.Target.Port)] = r
	}
	for _, s := range sites(wants, pins) {
		r := results[s.place]
		if r.Key == nil {
			for _, w := range s.wants {
				d.Hosts[w.index] = HostVerdict{Want: w.HostWant, Err: fmt.Errorf("scan host key of %s: %w", w.ref(), r.Err)}
			}
			continue
		}
		d.site(s, r.Key, rotate)
	}
	return d
}

// site decides about one place that offered key.
func (d *Decision) site(s *site, key ssh.PublicKey, rotate bool) {
	var accepting []wanted
	for _, w := range s.wants {
		if w.accepts(key) {
			accepting = append(accepting, w)
		} else {
			d.Refused = append(d.Refused, RefusedKey{Want: w.HostWant, Seen: ssh.FingerprintSHA256(key)})
			d.Hosts[w.index] = HostVerdict{Want: w.HostWant, Err: contradicted(s, w, key)}
		}
	}
	if len(accepting) == 0 {
		return
	}
	pin := s.newPin(key, accepting)
	known := slices.IndexFunc(s.pins, func(p orchestrator.Pin) bool {
		return p.KeyType == pin.KeyType && p.Key == pin.Key
	})
	switch {
	case len(s.pins) == 0:
		d.Add = append(d.Add, pin)
		d.found(accepting, "%s%s", pin.SHA256, how(pin.Source))
	case s.rebuilt():
		reason := rebuiltReason(s, accepting[0])
		d.Retire = append(d.Retire, orchestrator.PinRetirement{Pins: s.pins, Reason: reason})
		d.Add = append(d.Add, pin)
		d.found(accepting, "%s%s: %s", pin.SHA256, how(pin.Source), reason)
	case known >= 0:
		d.refer(s.pins[known], pin)
		d.found(accepting, "%s verified", pin.SHA256)
	case rotate:
		d.rotate(s, pin)
		d.found(accepting, "%s accepted in place of %s", pin.SHA256, s.pins[0].SHA256)
	default:
		for _, w := range accepting {
			d.Changed = append(d.Changed, ChangedKey{Want: w.HostWant, Pin: s.pins[0], Seen: pin.SHA256})
			d.Hosts[w.index] = HostVerdict{Want: w.HostWant, Changed: true, Err: changed(s, w, pin)}
		}
	}
}

// found gives each of wants the same message.
func (d *Decision) found(wants []wanted, format string, args ...any) {
	for _, w := range wants {
		d.Hosts[w.index] = HostVerdict{Want: w.HostWant, Message: fmt.Sprintf(format, args...)}
	}
}

// refer adds to a known pin what the wants know and it does not: hosts that
// refer to it, and the instance id where it was recorded without one.
func (d *Decision) refer(known, seen orchestrator.Pin) {
	fresh := slices.DeleteFunc(slices.Clone(seen.Users), func(u orchestrator.PinUser) bool {
		return slices.Contains(known.Users, u)
	})
	learnt := known.InstanceID == "" && seen.InstanceID != ""
	if len(fresh) == 0 && !learnt {
		return
	}
	known.Users = append(slices.Clone(known.Users), fresh...)
	if learnt {
		known.InstanceID = seen.InstanceID
	}
	d.Add = append(d.Add, known)
}

// rotate replaces every pin of the place; whoever referred to one refers to the
// new one: at one address there is one machine.
func (d *Decision) rotate(s *site, pin orchestrator.Pin) {
	pin.Source = orchestrator.PinRotated
	for _, old := range s.pins {
		for _, u := range old.Users {
			if !slices.Contains(pin.Users, u) {
				pin.Users = append(pin.Users, u)
			}
		}
	}
	d.Rotate = append(d.Rotate, orchestrator.PinRotation{Old: s.pins, New: pin})
}

func how(source orchestrator.PinSource) string {
	if source == orchestrator.PinStated {
		return " as the inventory states it"
	}
	return " on first use"
}

func rebuiltReason(s *site, w wanted) string {
	return fmt.Sprintf("exocomp_instance_id of %s changed from %q to %q", w.ref(), s.pins[0].InstanceID, w.InstanceID)
}

// contradicted says that the offered key is none of those that are stated.
func contradicted(s *site, w wanted, key ssh.PublicKey) error {
	return orchestrator.Errorf(orchestrator.CodeRefused,
		"host key of %s is not the stated one: exocomp_host_key says %s, %s offers %s (%s)",
		w.ref(), w.stated(), s.place, ssh.FingerprintSHA256(key), key.Type()).
		WithHint("correct exocomp_host_key, or find out who answers at %s", s.place)
}

// changed says that the place does not offer the pinned key any more.
func changed(s *site, w wanted, seen orchestrator.Pin) error {
	pinned := make([]string, len(s.pins))
	sameType := false
	for i, p := range s.pins {
		pinned[i] = p.SHA256 + " (" + p.KeyType + ")"
		sameType = sameType || p.KeyType == seen.KeyType
	}
	what := "changed"
	if !sameType {
		what = "is no longer offered"
	}
	stated := ""
	if seen.Source == orchestrator.PinStated && len(w.StatedKeys) > 0 {
		stated = ", which exocomp_host_key states"
	}
	return orchestrator.Errorf(orchestrator.CodeRefused, "host key of %s %s: pinned is %s, %s offers %s (%s)%s",
		w.ref(), what, strings.Join(pinned, " and "), s.place, seen.SHA256, seen.KeyType, stated).
		WithHint("check it out of band, then: exocomp host onboard --rotate %s", w.ref())
}
