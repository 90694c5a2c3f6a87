package daemon

import (
	"os"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// A daemon that began anew where a ledger was would trust every host key again
// and take every inventory back.
func TestALostLedgerIsNotReplaced(t *testing.T) {
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg := Config{DataDir: t.TempDir()}
	if err := cfg.refuseLostLedger(); err != nil {
		t.Errorf("a new installation: %v", err)
	}
	write(cfg.Ledger(), "SQLite format 3")
	write(cfg.identityFile(), "AGE-SECRET-KEY-1")
	if err := cfg.refuseLostLedger(); err != nil {
		t.Errorf("a ledger that is there: %v", err)
	}
	write(cfg.Ledger(), "")
	if err := cfg.refuseLostLedger(); orchestrator.CodeOf(err) != orchestrator.CodeRefused {
		t.Errorf("an empty ledger: %v, want it refused", err)
	}
	if err := os.Remove(cfg.Ledger()); err != nil {
		t.Fatal(err)
	}
	if err := cfg.refuseLostLedger(); orchestrator.CodeOf(err) != orchestrator.CodeRefused {
		t.Errorf("a missing ledger: %v, want it refused", err)
	}
	if err := CheckLedger(t.Context(), cfg); orchestrator.CodeOf(err) != orchestrator.CodeRefused {
		t.Errorf("doctor on a missing ledger: %v, want it refused", err)
	}
}
