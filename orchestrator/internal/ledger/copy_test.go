package ledger

import (
	"os"
	"path/filepath"
	"testing"
)

// copyLive opens a copy of a live ledger's file and WAL: what a machine that
// crashed now would find.
func copyLive(t *testing.T, l *Ledger) *Ledger {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	for _, suffix := range []string{"", "-wal"} {
		b := must(os.ReadFile(l.Path() + suffix))(t)
		if err := os.WriteFile(path+suffix, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return openAt(t, path, Options{})
}
