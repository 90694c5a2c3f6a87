package durable

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSymlink(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "link")
	for _, target := range []string{"nowhere", "/elsewhere", "nowhere"} {
		if err := Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		if got, err := os.Readlink(path); err != nil || got != target {
			t.Errorf("it leads to %q, %v", got, err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "taken"), PrivateDir); err != nil {
		t.Fatal(err)
	}
	if err := Symlink("nowhere", filepath.Join(dir, "taken")); err == nil {
		t.Error("a directory was replaced")
	}
	if err := Symlink("nowhere", filepath.Join(dir, "none", "link")); err == nil {
		t.Error("a link in no directory")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("left beside it: %v, %v", left, err)
	}
}
