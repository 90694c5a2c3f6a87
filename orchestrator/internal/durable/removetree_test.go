package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

// Root may remove everything, so that it is an ordinary user who has to.
func TestRemoveTreeOpensClosedDirectories(t *testing.T) {
	top, err := os.MkdirTemp("", "tree") // one that another user can enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = durable.RemoveTree(top) })
	tree, outside := filepath.Join(top, "tree"), filepath.Join(top, "outside")
	for _, dir := range []string{filepath.Join(tree, "pkg", "mod", "x"), filepath.Join(tree, "none"), filepath.Join(outside, "kept")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{filepath.Join(tree, "pkg", "mod", "x", "f"), filepath.Join(tree, "none", "f"), filepath.Join(outside, "kept", "f")} {
		if err := os.WriteFile(file, nil, 0o400); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(tree, "pkg", "link")); err != nil {
		t.Fatal(err)
	}
	const other = 65534
	if os.Geteuid() == 0 {
		giveAway(t, top, other)
	}
	for dir, mode := range map[string]fs.FileMode{
		filepath.Join(tree, "pkg", "mod", "x"): 0o500,
		filepath.Join(tree, "pkg", "mod"):      0o555,
		filepath.Join(tree, "pkg"):             0o500,
		filepath.Join(tree, "none"):            0,
		tree:                                   0o100,
		outside:                                0o500,
	} {
		defer func() { _ = os.Chmod(dir, 0o700) }()
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := asUser(other, func() error { return durable.RemoveTree(tree) }); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(tree); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the tree is still there: %v", err)
	}
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("what a link leads to has changed: %v, %v", info.Mode(), err)
	}
}

// giveAway makes uid the owner of a whole tree.
func giveAway(t *testing.T, top string, uid int) {
	t.Helper()
	err := filepath.WalkDir(top, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, uid, uid)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// asUser runs f with the rights that a user has to files, where this is root.
func asUser(uid int, f func() error) error {
	if os.Geteuid() != 0 {
		return f()
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with its goroutine
		if _, err := unix.SetfsuidRetUid(uid); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}
