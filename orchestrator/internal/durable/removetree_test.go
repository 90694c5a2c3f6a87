package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

// removeEnv has this executable remove the tree that it names.
const removeEnv = "DURABLE_TEST_REMOVE"

func TestMain(m *testing.M) {
	if tree := os.Getenv(removeEnv); tree != "" {
		if err := durable.RemoveTree(tree); err != nil {
			_, _ = os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

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
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	if os.Geteuid() == 0 {
		// The executable lies where the other user cannot go: as a descriptor it runs.
		const other = 65534
		giveAway(t, top, other)
		f, err := os.Open(exe)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		cmd = exec.CommandContext(t.Context(), "/proc/self/fd/3")
		cmd.ExtraFiles = []*os.File{f}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: other, Gid: other}}
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
	cmd.Env = []string{removeEnv + "=" + tree}
	cmd.Dir = "/"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("remove: %v: %s", err, out)
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
