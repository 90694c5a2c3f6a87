package daemon

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/publish"
	"github.com/exocomp/exocomp/orchestrator/internal/secrets"
)

func TestResolveHostReferences(t *testing.T) {
	known := []orchestrator.PinUser{
		{Workspace: "edge", Host: "web1"}, {Workspace: "edge", Host: "db1"}, {Workspace: "prod", Host: "web1"},
		{Workspace: "edge", Host: "db1"}, // two pins of one host
		{Workspace: "prod", Host: "edge"},
	}
	for ref, want := range map[string]orchestrator.PinUser{
		"edge/web1": {Workspace: "edge", Host: "web1"},
		"prod/web1": {Workspace: "prod", Host: "web1"},
		"db1":       {Workspace: "edge", Host: "db1"},
		"edge/db1":  {Workspace: "edge", Host: "db1"},
		"edge":      {Workspace: "prod", Host: "edge"}, // a host may be named like another workspace
	} {
		if got, err := resolve(ref, known); err != nil || got != want {
			t.Errorf("%s is %v (%v), want %v", ref, got, err, want)
		}
	}
	for ref, code := range map[string]orchestrator.Code{
		"web1":       orchestrator.CodeInvalid, // of two workspaces
		"":           orchestrator.CodeNotFound,
		"/":          orchestrator.CodeNotFound,
		"/web1":      orchestrator.CodeNotFound,
		"edge/":      orchestrator.CodeNotFound,
		"edge/web1/": orchestrator.CodeNotFound,
		"prod/db1":   orchestrator.CodeNotFound,
		"WEB1":       orchestrator.CodeNotFound,
		"*":          orchestrator.CodeNotFound,
	} {
		_, err := resolve(ref, known)
		if got := orchestrator.CodeOf(err); got != code {
			t.Errorf("%q: %v, want %s", ref, err, code)
			continue
		}
		if orchestrator.FailureOf(err).Hint == "" {
			t.Errorf("%q: no hint in %v", ref, err)
		}
	}
	_, err := resolve("web1", known)
	for _, part := range []string{"edge/web1", "prod/web1"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %s", err, part)
		}
	}
}

// A host without a pin, local or forgotten already, is not unknown.
func TestAHostWithoutAPinIsKnown(t *testing.T) {
	pinned := []orchestrator.PinUser{{Workspace: "edge", Host: "web1"}}
	known := append([]orchestrator.PinUser{{Workspace: "edge", Host: "here"}}, pinned...)
	if u, err := resolvePinned("web1", pinned, known); err != nil || u != pinned[0] {
		t.Errorf("a pinned host: %v, %v", u, err)
	}
	for ref, want := range map[string]string{
		"here":      "edge/here has no pin",
		"edge/here": "edge/here has no pin",
		"edge/gone": `no host "edge/gone" is known`,
	} {
		if _, err := resolvePinned(ref, pinned, known); orchestrator.CodeOf(err) != orchestrator.CodeNotFound || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", ref, err, want)
		}
	}
}

// What --print prints verifies the host against the pins, whoever types it.
func TestThePrintedOnboardCommandKnowsThePins(t *testing.T) {
	d := bare(t)
	d.publisher = &publish.Publisher{DataDir: d.cfg.DataDir}
	id, err := secrets.LoadOrCreateIdentity(filepath.Join(t.TempDir(), "identity.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if d.fleet, err = secrets.FleetKey(t.Context(), d.ledger, id); err != nil {
		t.Fatal(err)
	}
	d.capture(t, `{"web1": {"ansible_host": "10.0.0.1"}}`)
	command := func() string {
		t.Helper()
		v, err := d.GetOnboardVars(t.Context(), "edge/web1")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(v.Command, "\n")
	}
	if c := command(); strings.Contains(c, "known_hosts") {
		t.Errorf("of a host without a pin it would refuse any key:\n%s", c)
	}
	pin := orchestrator.Pin{
		Host: "10.0.0.1", Port: 22, KeyType: "ssh-ed25519", Key: "AAAA", SHA256: "SHA256:x", Source: orchestrator.PinFirstUse,
		Users: []orchestrator.PinUser{{Workspace: "edge", Host: "web1"}},
	}
	if err := d.ledger.ChangePins(t.Context(), orchestrator.PinChanges{Add: []orchestrator.Pin{pin}}); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`UserKnownHostsFile=\"` + d.cfg.DataDir + `/known_hosts\"`, "StrictHostKeyChecking=yes", "exocomp_fleet_pubkey"} {
		if c := command(); !strings.Contains(c, part) {
			t.Errorf("the command lacks %s:\n%s", part, c)
		}
	}
}
