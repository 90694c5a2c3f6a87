package publish_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
	"github.com/exocomp/exocomp/orchestrator/internal/publish"
	"golang.org/x/sys/unix"
)

func inventory(workspace, content string) orchestrator.Inventory {
	return orchestrator.Inventory{Workspace: workspace, Content: []byte(content)}
}

func pin(host string) orchestrator.Pin {
	return orchestrator.Pin{Host: host, Port: 22, KeyType: "ssh-ed25519", Key: "AAAA"}
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestInventoryIsPublishedPrivateAndVerified(t *testing.T) {
	p := &publish.Publisher{DataDir: t.TempDir()}
	inv := inventory("edge", `{"all":{}}`)
	if err := p.Inventory(t.Context(), inv); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(p.DataDir, "artifacts", "inventory", "edge.json")
	if got := mustRead(t, path); got != string(inv.Content) {
		t.Errorf("published %q, want %q", got, inv.Content)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != durable.PrivateFile {
		t.Errorf("mode = %v, want %v", info.Mode().Perm(), durable.PrivateFile)
	}
	if err := p.Verify(inv); err != nil {
		t.Errorf("Verify = %v", err)
	}
}

func TestVerifyFailsClosed(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(path string) error
		want  string
		state publish.State
	}{
		"lost":    {os.Remove, "has lost its file", publish.Missing},
		"changed": {func(path string) error { return os.WriteFile(path, []byte("{}"), 0o600) }, "differs from the ledger", publish.Differs},
		"not a file": {func(path string) error {
			return errors.Join(os.Remove(path), os.Mkdir(path, 0o700))
		}, "differs from the ledger", publish.Differs},
	} {
		t.Run(name, func(t *testing.T) {
			p := &publish.Publisher{DataDir: t.TempDir()}
			inv := inventory("edge", `{"all":{}}`)
			if err := p.Inventory(t.Context(), inv); err != nil {
				t.Fatal(err)
			}
			if err := tc.spoil(p.InventoryPath("edge")); err != nil {
				t.Fatal(err)
			}
			err := p.Verify(inv)
			if !errors.Is(err, orchestrator.ErrRefused) || !strings.Contains(err.Error(), tc.want) ||
				!strings.HasSuffix(err.Error(), "; exocomp workspace refresh edge") {
				t.Errorf("Verify = %v, want refused with %q", err, tc.want)
			}
			if got := p.State(inv); got != tc.state {
				t.Errorf("State = %s, want %s", got, tc.state)
			}
		})
	}
}

func TestKnownHostsKeepsTheVersionBefore(t *testing.T) {
	p := &publish.Publisher{DataDir: t.TempDir()}
	old := p.KnownHostsPath() + ".old"
	one, two := []orchestrator.Pin{pin("web1")}, []orchestrator.Pin{pin("web1"), pin("web2")}
	if err := p.Pins(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a previous version of the first one: %v", err)
	}
	for range 2 { // publishing the same again does not lose the version before
		if err := p.Pins(t.Context(), two); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := mustRead(t, p.KnownHostsPath()), "web1 ssh-ed25519 AAAA\nweb2 ssh-ed25519 AAAA\n"; got != want {
		t.Errorf("known_hosts = %q, want %q", got, want)
	}
	if got, want := mustRead(t, old), "web1 ssh-ed25519 AAAA\n"; got != want {
		t.Errorf("known_hosts.old = %q, want %q", got, want)
	}
}

func TestAllRepairsWhatACrashLeft(t *testing.T) {
	p := &publish.Publisher{DataDir: t.TempDir()}
	lost, changed, gone := inventory("lost", "1"), inventory("changed", "2"), inventory("gone", "3")
	for _, inv := range []orchestrator.Inventory{inventory("changed", "old"), gone} {
		if err := p.Inventory(t.Context(), inv); err != nil {
			t.Fatal(err)
		}
	}
	temp := filepath.Join(filepath.Dir(p.InventoryPath("x")), ".exocomp-tmp-1")
	if err := os.WriteFile(temp, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.All(t.Context(), []orchestrator.Inventory{lost, changed}, []orchestrator.Pin{pin("web1")}); err != nil {
		t.Fatal(err)
	}
	for _, inv := range []orchestrator.Inventory{lost, changed} {
		if err := p.Verify(inv); err != nil {
			t.Error(err)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(temp))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 2 {
		t.Errorf("left %v, want lost.json and changed.json", entries)
	}
	if got := mustRead(t, p.KnownHostsPath()); !strings.HasPrefix(got, "web1 ") {
		t.Errorf("known_hosts = %q", got)
	}
}

func TestRemoveTakesAnInventoryBack(t *testing.T) {
	p := &publish.Publisher{DataDir: t.TempDir()}
	if err := p.Inventory(t.Context(), inventory("edge", "{}")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a second time is no error
		if err := p.Remove("edge"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(p.InventoryPath("edge")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}

func TestWhatIsNoFileIsNotWaitedFor(t *testing.T) {
	p := &publish.Publisher{DataDir: t.TempDir()}
	inv := inventory("edge", `{"all":{}}`)
	if err := p.All(t.Context(), []orchestrator.Inventory{inv}, nil); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{p.InventoryPath("edge"), p.KnownHostsPath()} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Verify(inv); !errors.Is(err, orchestrator.ErrRefused) || !strings.Contains(err.Error(), "differs from the ledger") {
		t.Errorf("a pipe in place of the file: %v", err)
	}
	if err := p.All(t.Context(), []orchestrator.Inventory{inv}, []orchestrator.Pin{pin("a")}); err != nil {
		t.Fatal(err)
	}
	if err := p.Verify(inv); err != nil {
		t.Errorf("published again: %v", err)
	}
}
