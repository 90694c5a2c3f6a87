package secrets

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

func testIdentity(t *testing.T) *Identity {
	t.Helper()
	id, err := LoadOrCreateIdentity(filepath.Join(t.TempDir(), "keys", "identity.age"))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestIdentityIsMadeOnceAndPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys", "identity.age")
	first, err := LoadOrCreateIdentity(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != durable.PrivateFile {
		t.Errorf("mode = %v, want %v", got, durable.PrivateFile)
	}
	sealed, err := first.Seal([]byte("correct horse"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := LoadOrCreateIdentity(path)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := second.Open(sealed)
	if err != nil || string(plain) != "correct horse" {
		t.Errorf("Open = %q, %v; want the sealed value", plain, err)
	}
}

func TestIdentityFileThatCannotServeIsRefusedAndKept(t *testing.T) {
	for name, tc := range map[string]struct {
		content string
		mode    os.FileMode
		want    string
	}{
		"empty":          {"", 0o600, "does not hold one age X25519 identity"},
		"garbage":        {"AGE-SECRET-KEY-1QQQQ\n", 0o600, "does not hold one age X25519 identity"},
		"world-readable": {"whatever\n", 0o644, "readable by others (mode 0644)"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "identity.age")
			if err := os.WriteFile(path, []byte(tc.content), tc.mode); err != nil {
				t.Fatal(err)
			}
			_, err := LoadOrCreateIdentity(path)
			if !errors.Is(err, orchestrator.ErrRefused) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want refused with %q", err, tc.want)
			}
			if strings.Contains(err.Error(), "QQQQ") {
				t.Errorf("error quotes the key: %v", err)
			}
			if got, _ := os.ReadFile(path); string(got) != tc.content {
				t.Errorf("the file was changed to %q", got)
			}
		})
	}
}

func TestOpenRefusesForeignAndDamaged(t *testing.T) {
	id, other := testIdentity(t), testIdentity(t)
	sealed, err := other.Seal([]byte("value"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = id.Open(sealed)
	if !errors.Is(err, orchestrator.ErrRefused) || !strings.Contains(err.Error(), "sealed for another identity than "+id.path) {
		t.Errorf("foreign: %v", err)
	}
	for i := range sealed {
		damaged := append([]byte(nil), sealed...)
		damaged[i] ^= 0x40
		if plain, err := other.Open(damaged); err == nil || !errors.Is(err, orchestrator.ErrRefused) {
			t.Fatalf("byte %d flipped: Open = %q, %v; want refused", i, plain, err)
		}
	}
	if _, err := other.Open(sealed[:len(sealed)-1]); !errors.Is(err, orchestrator.ErrRefused) {
		t.Errorf("cut short: %v", err)
	}
	if _, err := other.Open(nil); !errors.Is(err, orchestrator.ErrRefused) {
		t.Errorf("empty: %v", err)
	}
}
