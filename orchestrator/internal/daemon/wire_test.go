package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/exocomp/exocomp/seeds"
)

func TestADaemonSweepsWhatACrashLeft(t *testing.T) {
	d := bare(t)
	d.cfg.RuntimeDir = t.TempDir()
	var left []string
	for _, dir := range []string{d.cfg.RuntimeDir, d.initDir(), d.seedDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		left = append(left, filepath.Join(dir, ".exocomp-tmp-1"))
	}
	for _, path := range left {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, path := range left {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is still there", path)
		}
	}
}

// A daemon starts on a disk that is full: what is right is left alone.
func TestSeedsAreWrittenOnlyWhereTheyDiffer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "seeds")
	stat := func() os.FileInfo {
		t.Helper()
		if err := writeSeeds(dir); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, seeds.Onboard))
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	first := stat()
	if !os.SameFile(first, stat()) {
		t.Error("a seed that is right was written again")
	}
	if err := os.WriteFile(filepath.Join(dir, seeds.Onboard), []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	if info := stat(); info.Size() != first.Size() {
		t.Error("a seed that is wrong was left")
	}
}
