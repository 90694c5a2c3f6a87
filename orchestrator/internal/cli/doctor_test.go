package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator/internal/ledger"
)

// configured writes a settings file whose daemon has its data in dir.
func configured(t *testing.T, dir string) string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "exocomp.hcl")
	if err := os.WriteFile(config, []byte("data_dir = \""+dir+"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}

func TestDoctorNamesADirectoryThatOthersMayWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	got := run(t, nil, "doctor", "--config", configured(t, dir))
	if got.code != exitFailed || !strings.Contains(got.out, "may be written by other users") || !strings.Contains(got.out, "chmod go-w "+dir) {
		t.Errorf("doctor: %+v", got)
	}
}

func TestDoctorReadsTheLedgerOfADaemonThatIsDown(t *testing.T) {
	dir := t.TempDir()
	config := configured(t, dir)
	if got := run(t, nil, "doctor", "--config", config); strings.Contains(got.out, "ledger") {
		t.Errorf("before the first start: %+v", got)
	}
	path := filepath.Join(dir, "ledger.db")
	l, err := ledger.Open(t.Context(), path, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := run(t, nil, "doctor", "--config", config); !strings.Contains(got.out, path) || strings.Contains(got.out, "BAD  ledger") {
		t.Errorf("a sound ledger: %+v", got)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteAt([]byte(strings.Repeat("x", int(info.Size()/2))), info.Size()/2); err != nil {
		t.Fatal(err)
	}
	if got := run(t, nil, "doctor", "--config", config); got.code != exitFailed || !strings.Contains(got.out, "is damaged") {
		t.Errorf("a damaged ledger: %+v", got)
	}
}
