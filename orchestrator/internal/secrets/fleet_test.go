package secrets

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// memStore is a SealedStore in memory that counts what it is given.
type memStore struct {
	values map[string][]byte
	puts   int
	err    error // returned by Sealed
}

func (m *memStore) Sealed(_ context.Context, kind, name string) ([]byte, error) {
	if m.err != nil {
		return nil, m.err
	}
	if v, ok := m.values[kind+"/"+name]; ok {
		return v, nil
	}
	return nil, orchestrator.Errorf(orchestrator.CodeNotFound, "no sealed %s %s", kind, name)
}

func (m *memStore) PutSealed(_ context.Context, kind, name string, sealed []byte) error {
	m.puts++
	if m.values == nil {
		m.values = map[string][]byte{}
	}
	m.values[kind+"/"+name] = sealed
	return nil
}

func TestFleetKeyIsMadeOnceAndRestsSealed(t *testing.T) {
	id, store := testIdentity(t), &memStore{}
	made, err := FleetKey(t.Context(), store, id)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := FleetKey(t.Context(), store, id)
	if err != nil {
		t.Fatal(err)
	}
	if made.PublicLine() != opened.PublicLine() || store.puts != 1 {
		t.Errorf("the second start made another key (stored %d times)", store.puts)
	}
	for _, v := range store.values {
		if strings.Contains(string(v), "PRIVATE KEY") {
			t.Error("the key rests unsealed")
		}
	}
}

func TestFleetKeyIsOneThatOpenSSHReads(t *testing.T) {
	fleet, err := FleetKey(t.Context(), &memStore{}, testIdentity(t))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "fleet")
	if err := os.WriteFile(path, []byte(fleet.Private().Reveal()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-y", "-f", path).CombinedOutput()
	if err != nil {
		t.Fatalf("ssh-keygen -y: %v: %s", err, out)
	}
	if got := strings.TrimSpace(string(out)); got != fleet.PublicLine() {
		t.Errorf("ssh-keygen says %q, PublicLine %q", got, fleet.PublicLine())
	}
	if !strings.HasPrefix(fleet.PublicLine(), "ssh-ed25519 AAAA") || !strings.HasSuffix(fleet.PublicLine(), " exocomp-fleet") {
		t.Errorf("PublicLine = %q", fleet.PublicLine())
	}
}

func TestFleetKeyIsNeverReplaced(t *testing.T) {
	store := &memStore{}
	if _, err := FleetKey(t.Context(), store, testIdentity(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := FleetKey(t.Context(), store, testIdentity(t)); !errors.Is(err, orchestrator.ErrRefused) {
		t.Errorf("another identity: error = %v, want refused", err)
	}
	store.err = errors.New("disk on fire")
	if _, err := FleetKey(t.Context(), store, testIdentity(t)); !errors.Is(err, store.err) {
		t.Errorf("unreadable store: error = %v, want %v", err, store.err)
	}
	if store.puts != 1 {
		t.Errorf("stored %d times, want once", store.puts)
	}
}
