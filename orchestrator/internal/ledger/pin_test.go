package ledger

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

func pin(host, key string, users ...string) orchestrator.Pin {
	p := orchestrator.Pin{
		Host: host, Port: 22, KeyType: "ssh-ed25519", Key: key, SHA256: "SHA256:" + key, Source: orchestrator.PinFirstUse,
	}
	for _, u := range users {
		w, h := filepath.Split(u)
		p.Users = append(p.Users, orchestrator.PinUser{Workspace: filepath.Clean(w), Host: h})
	}
	return p
}

func adding(pins ...orchestrator.Pin) orchestrator.PinChanges {
	return orchestrator.PinChanges{Add: pins}
}

func retiring(pins ...orchestrator.Pin) orchestrator.PinChanges {
	return orchestrator.PinChanges{By: tester, Retire: []orchestrator.PinRetirement{{Pins: pins, Reason: "forgotten"}}}
}

func rotating(to orchestrator.Pin, old ...orchestrator.Pin) orchestrator.PinChanges {
	return orchestrator.PinChanges{By: tester, Rotate: []orchestrator.PinRotation{{Old: old, New: to}}}
}

func changePins(t *testing.T, l *Ledger, c orchestrator.PinChanges) {
	t.Helper()
	if err := l.ChangePins(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func addPins(t *testing.T, l *Ledger, pins ...orchestrator.Pin) {
	t.Helper()
	changePins(t, l, adding(pins...))
}

// pinsAt returns the live pins of an address.
func pinsAt(t *testing.T, l *Ledger, host string) (at []orchestrator.Pin) {
	t.Helper()
	for _, p := range must(l.Pins(t.Context(), orchestrator.PinFilter{}))(t) {
		if p.Host == host {
			at = append(at, p)
		}
	}
	return at
}

// twoAdmitted returns a ledger in which edge/web1 and other/app share an
// address, and edge/web2 has its own; all three are admitted.
func twoAdmitted(t *testing.T) *Ledger {
	t.Helper()
	l := openTest(t)
	for workspace, hosts := range map[string][]string{"edge": {"web1", "web2"}, "other": {"app"}} {
		addWorkspace(t, l, workspace)
		submitRun(t, l, workspace)
		finish(t, l, claim(t, l), orchestrator.Outcome{Inventory: inventoryOf(hosts...)})
		onboard(t, l, hosts...)
		finish(t, l, claim(t, l), orchestrator.Outcome{})
	}
	addPins(t, l, pin("10.0.0.1", "AAA", "edge/web1"), pin("10.0.0.2", "BBB", "edge/web2"))
	addPins(t, l, pin("10.0.0.1", "AAA", "other/app"))
	return l
}

func admitted(t *testing.T, l *Ledger, workspace string) (hosts string) {
	t.Helper()
	for _, a := range must(l.Admissions(t.Context(), workspace))(t) {
		hosts += a.Host + " "
	}
	return hosts
}

func TestAPinIsRecordedOnceAndGainsUsers(t *testing.T) {
	l := twoAdmitted(t)
	pins := must(l.Pins(t.Context(), orchestrator.PinFilter{}))(t)
	if len(pins) != 2 || len(pins[0].Users) != 2 || pins[0].AddedAt.IsZero() {
		t.Fatalf("pins %+v", pins)
	}
	at := pinsAt(t, l, "10.0.0.1")
	if len(at) != 1 || at[0].Key != "AAA" {
		t.Errorf("pins at 10.0.0.1: %+v", at)
	}
	if of := must(l.Pins(t.Context(), orchestrator.PinFilter{Workspace: "other"}))(t); len(of) != 1 || len(of[0].Users) != 2 {
		t.Errorf("pins of other: %+v", of)
	}
	other := pin("10.0.0.1", "CCC")
	other.KeyType = "ssh-rsa"
	addPins(t, l, other)
	if at := pinsAt(t, l, "10.0.0.1"); len(at) != 2 {
		t.Errorf("pins of two types: %+v", at)
	}
}

func TestASecondKeyOfOneTypeIsAConflict(t *testing.T) {
	l := twoAdmitted(t)
	err := l.ChangePins(t.Context(), adding(pin("10.0.0.3", "DDD"), pin("10.0.0.1", "EVIL", "edge/web1")))
	wantCode(t, err, orchestrator.CodeConflict, "SHA256:AAA", "SHA256:EVIL", "--rotate")
	if at := pinsAt(t, l, "10.0.0.3"); len(at) != 0 {
		t.Errorf("a refused call left %+v", at)
	}
	bad := pin("10.0.0.4", "FFF")
	bad.Port = 0
	wantCode(t, l.ChangePins(t.Context(), adding(bad)), orchestrator.CodeInvalid, "10.0.0.4")
	wantCode(t, l.ChangePins(t.Context(), orchestrator.PinChanges{Job: "job_none"}), orchestrator.CodeNotFound)
}

func TestRetiringAPinEndsTheAdmissionsOfAllItsUsers(t *testing.T) {
	l := twoAdmitted(t)
	for range 2 { // the second time there is nothing to do
		changePins(t, l, retiring(pin("10.0.0.1", "AAA")))
	}
	if got := admitted(t, l, "edge") + "/" + admitted(t, l, "other"); got != "web2 /" {
		t.Errorf("admitted %q, want edge's web2 alone", got)
	}
	all := must(l.Pins(t.Context(), orchestrator.PinFilter{IncludeRetired: true}))(t)
	if len(all) != 2 || all[0].Retired != "forgotten" || all[0].RetiredAt.IsZero() || len(all[0].Users) != 2 {
		t.Errorf("pins %+v", all)
	}
	security := must(l.Events(t.Context(), orchestrator.EventFilter{Security: true}))(t)
	if len(security) != 2 || security[0].Kind != orchestrator.EventPinRetired || security[0].By != tester || security[0].Host == "" {
		t.Errorf("security events %+v, want one for each user", security)
	}
	addPins(t, l, pin("10.0.0.1", "NEW", "edge/web1")) // first use applies again
}

func TestAHostThatLeavesKeepsAPinThatOthersUse(t *testing.T) {
	l := twoAdmitted(t)
	submitJob(t, l, orchestrator.JobWorkspaceApply, "edge")
	finish(t, l, claim(t, l), orchestrator.Outcome{
		Inventory: inventoryOf("web3"),
		Retire:    []orchestrator.Pin{pin("10.0.0.1", "AAA", "edge/web1"), pin("10.0.0.2", "BBB")},
	})
	pins := must(l.Pins(t.Context(), orchestrator.PinFilter{}))(t)
	if len(pins) != 1 || pins[0].Key != "AAA" || len(pins[0].Users) != 1 || pins[0].Users[0].Workspace != "other" {
		t.Errorf("live pins %+v, want the shared one for other/app", pins)
	}
	if got := admitted(t, l, "edge") + "/" + admitted(t, l, "other"); got != "/app " {
		t.Errorf("admitted %q, want other's app alone", got)
	}
}

func TestAHostThatMovesIsAdmittedAnew(t *testing.T) {
	l := twoAdmitted(t)
	submitJob(t, l, orchestrator.JobWorkspaceApply, "edge")
	finish(t, l, claim(t, l), orchestrator.Outcome{
		Inventory: inventoryOf("web1", "web2"),
		Retire:    []orchestrator.Pin{pin("10.0.0.2", "BBB", "edge/web2")},
	})
	if got := admitted(t, l, "edge"); got != "web1 " {
		t.Errorf("admitted %q, want web1", got)
	}
}

func TestRotationKeepsTheUsersAndEndsTheirAdmissions(t *testing.T) {
	l := twoAdmitted(t)
	old := pinsAt(t, l, "10.0.0.1")
	changePins(t, l, rotating(pin("10.0.0.1", "NEW", "edge/web1"), old...))
	now := pinsAt(t, l, "10.0.0.1")
	if len(now) != 1 || now[0].Key != "NEW" || now[0].Source != orchestrator.PinRotated || len(now[0].Users) != 2 {
		t.Errorf("pins %+v", now)
	}
	if got := admitted(t, l, "edge") + "/" + admitted(t, l, "other"); got != "web2 /" {
		t.Errorf("admitted %q, want web2 alone", got)
	}
	changePins(t, l, rotating(pin("10.0.0.1", "NEW"), now...)) // the same key
	if again := pinsAt(t, l, "10.0.0.1"); len(again) != 1 || again[0].AddedAt != now[0].AddedAt {
		t.Errorf("pins %+v, want the same as before", again)
	}
}

func TestRetiredPinsAreKeptForNinetyDays(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	l := openAt(t, filepath.Join(t.TempDir(), "ledger.db"), Options{Now: func() time.Time { return now }})
	addPins(t, l, pin("10.0.0.1", "AAA", "edge/web1"), pin("10.0.0.2", "BBB", "edge/web2"))
	changePins(t, l, retiring(pin("10.0.0.1", "AAA")))
	for _, c := range []struct {
		later  time.Duration
		pruned int
	}{{orchestrator.RetiredPinRetention, 0}, {time.Nanosecond, 1}, {time.Hour, 0}} {
		now = now.Add(c.later)
		if n := must(l.PruneRetiredPins(t.Context()))(t); n != c.pruned {
			t.Errorf("%d pins pruned, want %d", n, c.pruned)
		}
	}
	if all := must(l.Pins(t.Context(), orchestrator.PinFilter{IncludeRetired: true}))(t); len(all) != 1 || all[0].Key != "BBB" {
		t.Errorf("pins %+v, want the live one", all)
	}
}

// The case of a host's name means nothing, neither to DNS nor to ssh.
func TestAPinIsFoundInAnyCase(t *testing.T) {
	l := openTest(t)
	addPins(t, l, pin("Web1.Example.org", "AAA", "edge/web1"))
	addPins(t, l, pin("web1.example.ORG", "AAA", "other/app"))
	if at := pinsAt(t, l, "web1.example.org"); len(at) != 1 || len(at[0].Users) != 2 {
		t.Fatalf("pins %+v, want one with two users", must(l.Pins(t.Context(), orchestrator.PinFilter{}))(t))
	}
	wantCode(t, l.ChangePins(t.Context(), adding(pin("WEB1.example.org", "EVIL"))), orchestrator.CodeConflict)
	changePins(t, l, rotating(pin("WEB1.example.org", "NEW"), pin("WEB1.EXAMPLE.ORG", "AAA")))
	changePins(t, l, retiring(pin("WEB1.example.org", "NEW")))
	if live := must(l.Pins(t.Context(), orchestrator.PinFilter{}))(t); len(live) != 0 {
		t.Errorf("live pins %+v, want none", live)
	}
}
