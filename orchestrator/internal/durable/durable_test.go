package durable_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

func TestWriteFileReplacesWholeAndSetsModeDespiteUmask(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	path := filepath.Join(t.TempDir(), "f")
	for _, content := range []string{"first, longer", "second"} {
		if err := durable.WriteFile(path, []byte(content), durable.PrivateFile); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != content {
			t.Errorf("content = %q, want %q", got, content)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != durable.PrivateFile {
		t.Errorf("mode = %v, want %v", info.Mode().Perm(), durable.PrivateFile)
	}
}

func TestWriteFileLeavesOldContentAndNoTempOnError(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "d")
	if err := os.MkdirAll(filepath.Join(target, "child"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := durable.WriteFile(target, []byte("x"), durable.PrivateFile); err == nil {
		t.Fatal("replacing a directory succeeded")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("left %v, want only the target", entries)
	}
}

func TestMkdirIsPrivateAndRepeatable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "c")
	for range 2 {
		if err := durable.Mkdir(path); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != durable.PrivateDir {
		t.Errorf("mode = %v, want %v", info.Mode().Perm(), durable.PrivateDir)
	}
}

func TestSweepRemovesOnlyTemporaryFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "[data]") // no pattern
	if err := durable.Sweep(dir); err != nil {
		t.Errorf("a directory that is not there: %v", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".exocomp-tmp-1", "kept"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := durable.Sweep(dir); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != "kept" {
		t.Errorf("left %v, want only kept", entries)
	}
}
