package hostkeys

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/exocomp/exocomp/orchestrator"
)

func TestDecide(t *testing.T) {
	a, b := newKey(t, ssh.KeyAlgoED25519).PublicKey(), newKey(t, ssh.KeyAlgoED25519).PublicKey()
	rs := newKey(t, ssh.KeyAlgoRSA).PublicKey()
	web1 := HostWant{Workspace: "edge", Name: "web1", Host: "10.0.0.5", Port: 22}
	web2 := HostWant{Workspace: "edge", Name: "web2", Host: "10.0.0.5", Port: 22}
	stating := func(w HostWant, keys ...ssh.PublicKey) HostWant {
		for _, k := range keys {
			w.StatedKeys = append(w.StatedKeys, keyLine(k))
		}
		return w
	}
	instance := func(w HostWant, id string) HostWant { w.InstanceID = id; return w }
	user1, user2 := web1.user(), web2.user()
	other := orchestrator.PinUser{Workspace: "lab", Host: "db1"}
	scanned := func(k ssh.PublicKey) []Result {
		return []Result{{Target: Target{Host: "10.0.0.5", Port: 22}, Key: k}}
	}
	with := func(p orchestrator.Pin, source orchestrator.PinSource) orchestrator.Pin { p.Source = source; return p }
	fa, fb, fr := ssh.FingerprintSHA256(a), ssh.FingerprintSHA256(b), ssh.FingerprintSHA256(rs)

	for name, tc := range map[string]struct {
		wants  []HostWant
		pins   []orchestrator.Pin
		offers ssh.PublicKey
		rotate bool

		add     []orchestrator.Pin
		retired []orchestrator.Pin
		rotated []orchestrator.Pin // the new ones
		changed []string           // fingerprints seen
		says    []string           // for each want, the message or error
	}{
		"first use": {
			wants: []HostWant{web1}, offers: a,
			add:  []orchestrator.Pin{pinOf(web1, a, user1)},
			says: []string{fa + " on first use"},
		},
		"stated and offered": {
			wants: []HostWant{stating(web1, b, a)}, offers: a,
			add:  []orchestrator.Pin{with(pinOf(web1, a, user1), orchestrator.PinStated)},
			says: []string{fa + " as the inventory states it"},
		},
		"stated and another offered": {
			wants: []HostWant{stating(web1, b)}, offers: a,
			says: []string{"host key of edge/web1 is not the stated one: exocomp_host_key says " + fb + ", 10.0.0.5:22 offers " + fa},
		},
		"stated and another offered is not rotated": {
			wants: []HostWant{stating(web1, b)}, pins: []orchestrator.Pin{pinOf(web1, b, user1)}, offers: a, rotate: true,
			says: []string{"is not the stated one"},
		},
		"verified": {
			wants: []HostWant{web1}, pins: []orchestrator.Pin{pinOf(web1, a, user1)}, offers: a,
			says: []string{fa + " verified"},
		},
		"verified, and the instance id becomes known": {
			wants: []HostWant{instance(web1, "i-1")}, pins: []orchestrator.Pin{pinOf(web1, a, user1)}, offers: a,
			add:  []orchestrator.Pin{pinOf(instance(web1, "i-1"), a, user1)},
			says: []string{"verified"},
		},
		"changed": {
			wants: []HostWant{web1}, pins: []orchestrator.Pin{pinOf(web1, a, user1)}, offers: b,
			changed: []string{fb},
			says: []string{"host key of edge/web1 changed: pinned is " + fa + " (ssh-ed25519), 10.0.0.5:22 offers " + fb +
				" (ssh-ed25519); check it out of band, then: exocomp host onboard --rotate edge/web1"},
		},
		"changed to the stated one still asks": {
			wants: []HostWant{stating(web1, b)}, pins: []orchestrator.Pin{pinOf(web1, a, user1)}, offers: b,
			changed: []string{fb},
			says:    []string{"which exocomp_host_key states"},
		},
		"no longer offered": {
			wants: []HostWant{web1}, pins: []orchestrator.Pin{pinOf(web1, a, user1)}, offers: rs,
			changed: []string{fr},
			says:    []string{"host key of edge/web1 is no longer offered: pinned is " + fa + " (ssh-ed25519), 10.0.0.5:22 offers " + fr + " (ssh-rsa)"},
		},
		"rotated for everybody at the address": {
			wants: []HostWant{web1}, pins: []orchestrator.Pin{pinOf(web1, a, user1, other)}, offers: b, rotate: true,
			rotated: []orchestrator.Pin{with(pinOf(web1, b, user1, other), orchestrator.PinRotated)},
			says:    []string{fb + " accepted in place of " + fa},
		},
		"rotate without a change": {
			wants: []HostWant{web1}, pins: []orchestrator.Pin{pinOf(web1, a, user1)}, offers: a, rotate: true,
			says: []string{"verified"},
		},
		"rebuilt": {
			wants: []HostWant{instance(web1, "i-2")}, pins: []orchestrator.Pin{pinOf(instance(web1, "i-1"), a, user1)}, offers: b,
			retired: []orchestrator.Pin{pinOf(instance(web1, "i-1"), a, user1)},
			add:     []orchestrator.Pin{pinOf(instance(web1, "i-2"), b, user1)},
			says:    []string{fb + ` on first use: exocomp_instance_id of edge/web1 changed from "i-1" to "i-2"`},
		},
		"rebuilt, but another workspace relies on the pin": {
			wants: []HostWant{instance(web1, "i-2")}, pins: []orchestrator.Pin{pinOf(instance(web1, "i-1"), a, user1, other)}, offers: b,
			changed: []string{fb},
			says:    []string{"changed"},
		},
		"rebuilt under two names": {
			wants:   []HostWant{instance(web1, "i-2"), instance(web2, "i-2")},
			pins:    []orchestrator.Pin{pinOf(instance(web1, "i-1"), a, user1, user2)},
			offers:  b,
			retired: []orchestrator.Pin{pinOf(instance(web1, "i-1"), a, user1, user2)},
			add:     []orchestrator.Pin{pinOf(instance(web1, "i-2"), b, user1, user2)},
			says:    []string{"on first use", "on first use"},
		},
		"an instance id alone is no rebuild": {
			wants: []HostWant{instance(web1, "i-1")}, pins: []orchestrator.Pin{pinOf(web1, a, user1)}, offers: b,
			changed: []string{fb},
			says:    []string{"changed"},
		},
		"recycled address, same key": {
			wants: []HostWant{web2}, pins: []orchestrator.Pin{pinOf(web1, a, other)}, offers: a,
			add:  []orchestrator.Pin{pinOf(web1, a, other, user2)},
			says: []string{"verified"},
		},
		"recycled address, another key": {
			wants: []HostWant{web2}, pins: []orchestrator.Pin{pinOf(web1, a, other)}, offers: b,
			changed: []string{fb},
			says:    []string{"host key of edge/web2 changed"},
		},
		"two names, one contradicts": {
			wants: []HostWant{web1, stating(web2, b)}, offers: a,
			add:  []orchestrator.Pin{pinOf(web1, a, user1)},
			says: []string{" on first use", "host key of edge/web2 is not the stated one"},
		},
		"second type at the address": {
			wants: []HostWant{web1}, pins: []orchestrator.Pin{pinOf(web1, a, user1), pinOf(web1, rs, user1)}, offers: rs,
			says: []string{fr + " verified"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(tc.wants, tc.pins, scanned(tc.offers), tc.rotate)
			var retired, rotated []orchestrator.Pin
			var changed []string
			for _, r := range d.Retire {
				retired = append(retired, r.Pins...)
			}
			for _, r := range d.Rotate {
				rotated = append(rotated, r.New)
			}
			for _, c := range d.Changed {
				changed = append(changed, c.Seen)
			}
			for what, diff := range map[string]string{
				"add":     cmp.Diff(tc.add, d.Add),
				"retire":  cmp.Diff(tc.retired, retired),
				"rotate":  cmp.Diff(tc.rotated, rotated),
				"changed": cmp.Diff(tc.changed, changed),
			} {
				if diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}
			for i, v := range d.Hosts {
				got := v.Message
				if v.Err != nil {
					got = v.Err.Error()
				}
				if !strings.Contains(got, tc.says[i]) {
					t.Errorf("host %d: %q, want %q", i, got, tc.says[i])
				}
				if v.Want.Name != tc.wants[i].Name {
					t.Errorf("host %d is about %s", i, v.Want.Name)
				}
			}
		})
	}
}

func TestDecideKeepsTheScansError(t *testing.T) {
	down := orchestrator.Errorf(orchestrator.CodeFailed, "it is down")
	w := HostWant{Workspace: "edge", Name: "web1", Host: "WEB1.example.org", Port: 22}
	d := Decide([]HostWant{w}, nil, []Result{{Target: Target{Host: "web1.example.org", Port: 22}, Err: down}}, false)
	if len(d.Add) != 0 || !errors.Is(d.Hosts[0].Err, down) {
		t.Errorf("decision = %+v", d)
	}
}

func TestTypesToAskFor(t *testing.T) {
	ed, rs := newKey(t, ssh.KeyAlgoED25519).PublicKey(), newKey(t, ssh.KeyAlgoRSA).PublicKey()
	w := HostWant{Workspace: "edge", Name: "web1", Host: "h", Port: 22, InstanceID: "i-1"}
	stated, rebuilt := w, w
	stated.StatedKeys = []string{keyLine(rs)}
	rebuilt.InstanceID = "i-2"
	pins := []orchestrator.Pin{pinOf(w, rs, w.user()), pinOf(w, ed, w.user())}
	for name, tc := range map[string]struct {
		want   HostWant
		pins   []orchestrator.Pin
		rotate bool
		types  []string
	}{
		"nothing known":     {w, nil, false, nil},
		"pinned":            {w, pins, false, []string{"ssh-ed25519", "ssh-rsa"}},
		"pinned, rotating":  {w, pins, true, []string{"ssh-ed25519", "ssh-rsa"}},
		"stated":            {stated, nil, false, []string{"ssh-rsa"}},
		"stated and pinned": {stated, pins[1:], false, []string{"ssh-ed25519"}},
		"stated, rotating":  {stated, pins[1:], true, []string{"ssh-rsa"}},
		"rebuilt":           {rebuilt, pins, false, nil},
	} {
		got := sites([]HostWant{tc.want}, tc.pins)[0].types(tc.rotate)
		if diff := cmp.Diff(tc.types, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
