package hostkeys

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/exocomp/exocomp/orchestrator"
)

// memStore is a Store in memory that notes its calls.
type memStore struct {
	pins   []orchestrator.Pin
	reads  int
	calls  []string
	events []orchestrator.Event
	err    error // returned by ChangePins
}

func (m *memStore) Pins(context.Context, orchestrator.PinFilter) ([]orchestrator.Pin, error) {
	m.reads++
	return slices.Clone(m.pins), nil
}

func (m *memStore) ChangePins(_ context.Context, c orchestrator.PinChanges) error {
	m.calls = append(m.calls, fmt.Sprintf("for %s by %s: retire %d, rotate %d, add %d",
		c.Job, c.By.Name, len(c.Retire), len(c.Rotate), len(c.Add)))
	if m.err != nil {
		return m.err
	}
	m.events = append(m.events, c.Events...)
	for _, r := range c.Retire {
		m.remove(r.Pins)
	}
	for _, r := range c.Rotate {
		m.remove(r.Old)
		m.pins = append(m.pins, r.New)
	}
	m.pins = append(m.pins, c.Add...)
	return nil
}

func (m *memStore) remove(pins []orchestrator.Pin) {
	m.pins = slices.DeleteFunc(m.pins, func(p orchestrator.Pin) bool {
		return slices.ContainsFunc(pins, func(q orchestrator.Pin) bool { return p.Key == q.Key })
	})
}

func TestPinnerThroughALifetime(t *testing.T) {
	one, two := newKey(t, ssh.KeyAlgoED25519), newKey(t, ssh.KeyAlgoED25519)
	rs := newKey(t, ssh.KeyAlgoRSA)
	s := newServer(t, one, rs)
	store := &memStore{}
	p := &Pinner{Store: store}
	want := s.want("web1")
	want.InstanceID = "i-1"
	request := func(rotate bool) Request {
		return Request{Job: "job_1", By: orchestrator.Peer{Name: "ann"}, Hosts: []HostWant{want}, Rotate: rotate}
	}
	pin := func(rotate bool) ([]orchestrator.HostReport, error) {
		store.calls = nil
		return p.Pin(t.Context(), request(rotate))
	}
	mustPin := func(step string, rotate bool, calls ...string) {
		t.Helper()
		report, err := pin(rotate)
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		if report[0].State != orchestrator.HostPinned || report[0].Name != "web1" {
			t.Errorf("%s: report = %+v", step, report[0])
		}
		if !slices.Equal(store.calls, calls) {
			t.Errorf("%s: store saw %q, want %q", step, store.calls, calls)
		}
	}

	mustPin("first use", false, "for job_1 by ann: retire 0, rotate 0, add 1")
	s.setKeys(rs, newKey(t, ssh.KeyAlgoECDSA256), one) // what else is offered adds nothing
	mustPin("again", false)

	s.setKeys(two)
	report, err := pin(false)
	if !errors.Is(err, orchestrator.ErrRefused) || report[0].State != orchestrator.HostFailed {
		t.Fatalf("changed: %+v, %v, store saw %q", report, err, store.calls)
	}
	if len(store.events) != 1 || store.events[0].Kind != orchestrator.EventPinChanged || store.events[0].Host != "web1" {
		t.Errorf("changed: events = %+v", store.events)
	}
	mustPin("rotate", true, "for job_1 by ann: retire 0, rotate 1, add 0")

	s.setKeys(rs)
	before := s.conns.Load()
	_, err = pin(false)
	if err == nil || !strings.Contains(err.Error(), "no longer offered") || !strings.Contains(err.Error(), ssh.FingerprintSHA256(rs.PublicKey())) {
		t.Errorf("no longer offered: %v", err)
	}
	if n := s.conns.Load() - before; n != 2 {
		t.Errorf("no longer offered: %d connections, want 2", n)
	}

	want.InstanceID = "i-2"
	store.pins[0].InstanceID = "i-1"
	mustPin("rebuilt", false, "for job_1 by ann: retire 1, rotate 0, add 1")
}

func TestPinnerReportsEveryHostAndRecordsTheGoodOnes(t *testing.T) {
	good := newServer(t, newKey(t, ssh.KeyAlgoED25519))
	store := &memStore{}
	wants := []HostWant{good.want("good")}
	for i := range 2 {
		s := newServer(t, newKey(t, ssh.KeyAlgoED25519))
		w := s.want(fmt.Sprintf("changed%d", i))
		store.pins = append(store.pins, pinOf(w, newKey(t, ssh.KeyAlgoED25519).PublicKey(), w.user()))
		wants = append(wants, w)
	}
	wants = append(wants, HostWant{Workspace: "edge", Name: "dead", Host: "127.0.0.1", Port: 1})
	p := &Pinner{Store: store, Options: Options{Timeout: 5 * time.Second}}
	report, err := p.Pin(t.Context(), Request{Job: "job_1", Hosts: wants})
	if !errors.Is(err, orchestrator.ErrRefused) {
		t.Fatalf("error = %v, want refused", err)
	}
	for _, part := range []string{
		"host key of edge/changed0 changed", "host key of edge/changed1 changed", "edge/dead", "connection refused",
		"; check it out of band, then: exocomp host onboard --rotate edge/changed0 edge/changed1",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error lacks %q:\n%v", part, err)
		}
	}
	var states []orchestrator.HostState
	for _, h := range report {
		states = append(states, h.State)
	}
	wantStates := []orchestrator.HostState{orchestrator.HostPinned, orchestrator.HostFailed, orchestrator.HostFailed, orchestrator.HostUnreachable}
	if !slices.Equal(states, wantStates) {
		t.Errorf("states = %v, want %v", states, wantStates)
	}
	if !slices.Equal(store.calls, []string{"for job_1 by : retire 0, rotate 0, add 1"}) {
		t.Errorf("store saw %q: the good host is recorded", store.calls)
	}
	if len(store.events) != 2 {
		t.Errorf("%d events, want one for each changed key", len(store.events))
	}
}

func TestPinnerScansAnAddressOnce(t *testing.T) {
	s := newServer(t, newKey(t, ssh.KeyAlgoED25519))
	store := &memStore{}
	_, err := (&Pinner{Store: store}).Pin(t.Context(), Request{Job: "job_1", Hosts: []HostWant{s.want("a"), s.want("b")}})
	if err != nil {
		t.Fatal(err)
	}
	if n := s.conns.Load(); n != 1 || len(store.pins) != 1 || len(store.pins[0].Users) != 2 {
		t.Errorf("%d connections, pins %+v; want one of each, with two users", n, store.pins)
	}
}

func TestPinnerReturnsTheStoresError(t *testing.T) {
	s := newServer(t, newKey(t, ssh.KeyAlgoED25519))
	full := errors.New("disk full")
	report, err := (&Pinner{Store: &memStore{err: full}}).Pin(t.Context(), Request{Hosts: []HostWant{s.want("a")}})
	if !errors.Is(err, full) || report != nil {
		t.Errorf("Pin = %v, %v; want no report and %v", report, err, full)
	}
}

// A fleet's pins are read once and changed once: each change is a commit and
// each publication a few fsyncs.
func TestPinnerAsksTheStoreOnceForAllHosts(t *testing.T) {
	store := &memStore{}
	var wants []HostWant
	for i := range 3 {
		s := newServer(t, newKey(t, ssh.KeyAlgoED25519))
		w := s.want(fmt.Sprintf("web%d", i))
		store.pins = append(store.pins, pinOf(w, newKey(t, ssh.KeyAlgoED25519).PublicKey(), w.user()))
		wants = append(wants, w)
	}
	p := &Pinner{Store: store}
	if _, err := p.Pin(t.Context(), Request{Job: "job_1", Hosts: wants, Rotate: true}); err != nil {
		t.Fatal(err)
	}
	if store.reads != 1 || !slices.Equal(store.calls, []string{"for job_1 by : retire 0, rotate 3, add 0"}) {
		t.Errorf("%d reads, then %q; want one of each", store.reads, store.calls)
	}
}

// That somebody else answers where the inventory states a key is as much an
// event as a pin that changed.
func TestAKeyThatContradictsTheStatedOneIsASecurityEvent(t *testing.T) {
	s := newServer(t, newKey(t, ssh.KeyAlgoED25519))
	want := s.want("web1")
	want.StatedKeys = []string{keyLine(newKey(t, ssh.KeyAlgoED25519).PublicKey())}
	store := &memStore{}
	_, err := (&Pinner{Store: store}).Pin(t.Context(), Request{
		Run: "run_1", Step: orchestrator.StepHostOnboard, Job: "job_1", Hosts: []HostWant{want},
		Again: "AGAIN", Corrected: "CORRECTED",
	})
	if f := orchestrator.FailureOf(err); f == nil || f.Code != orchestrator.CodeRefused ||
		!strings.HasPrefix(f.Hint, "correct exocomp_host_key") || !strings.HasSuffix(f.Hint, "; then: CORRECTED") {
		t.Errorf("failure = %+v, want refused, and how to go on with a corrected inventory", f)
	}
	if len(store.events) != 1 {
		t.Fatalf("events = %+v, want one", store.events)
	}
	e := store.events[0]
	if !e.Kind.Security() || !e.Warning || e.Run != "run_1" || e.Job != "job_1" || e.Workspace != "edge" || e.Host != "web1" ||
		!strings.Contains(e.Message, want.stated()) {
		t.Errorf("event = %+v", e)
	}
}

func TestEveryFailureToPinSaysHowToGoOn(t *testing.T) {
	web1 := HostWant{Workspace: "edge", Name: "web1", Host: "192.0.2.1", Port: 22}
	silent := HostVerdict{Want: web1, Err: orchestrator.Errorf(orchestrator.CodeFailed, "192.0.2.1:22 gave no host key")}
	changed := HostVerdict{Want: web1, Changed: true, Err: orchestrator.Errorf(orchestrator.CodeRefused, "changed").WithHint("rotate")}
	for _, c := range []struct {
		run   orchestrator.RunID
		hosts []HostVerdict
		hint  string
	}{
		{"", []HostVerdict{silent}, "look whether an SSH server answers at 192.0.2.1:22; then: AGAIN"},
		{"run_1", []HostVerdict{silent}, "look whether an SSH server answers at 192.0.2.1:22; then: AGAIN"},
		{"", []HostVerdict{silent, changed}, "check it out of band, then: exocomp host onboard --rotate edge/web1"},
		{"run_1", []HostVerdict{changed, silent}, "check it out of band, then: exocomp host onboard --rotate edge/web1 --wait && AGAIN"},
	} {
		err := Request{Run: c.run, Again: "AGAIN", Corrected: "CORRECTED"}.failure(Decision{Hosts: c.hosts})
		if f := orchestrator.FailureOf(err); f.Hint != c.hint {
			t.Errorf("hint of %d host(s), run %q: %q, want %q", len(c.hosts), c.run, f.Hint, c.hint)
		}
	}
}
