package rpc_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

func TestTokensAreMadeOnceAndKept(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	dir := t.TempDir()
	first, err := rpc.EnsureTokens(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := rpc.EnsureTokens(dir)
	if err != nil {
		t.Fatal(err)
	}
	if first != again {
		t.Error("the tokens changed")
	}
	if first.Operator == first.Reader || len(first.Operator.Reveal()) != 64 || len(first.Reader.Reveal()) != 64 {
		t.Error("the tokens are not two of 256 bits")
	}
	for _, name := range []string{rpc.OperatorTokenFile, rpc.ReaderTokenFile} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o640 {
			t.Errorf("%s: mode %v, want 0640", name, info.Mode().Perm())
		}
	}
}

func TestDamagedOrOpenTokenFileIsRefused(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"empty":           func(p string) error { return os.WriteFile(p, nil, 0o640) },
		"cut":             func(p string) error { return os.Truncate(p, 10) },
		"readable by all": func(p string) error { return os.Chmod(p, 0o644) },
		"writable by all": func(p string) error { return os.Chmod(p, 0o642) },
	} {
		dir := t.TempDir()
		if _, err := rpc.EnsureTokens(dir); err != nil {
			t.Fatal(err)
		}
		if err := damage(filepath.Join(dir, rpc.ReaderTokenFile)); err != nil {
			t.Fatal(err)
		}
		if _, err := rpc.EnsureTokens(dir); !errors.Is(err, orchestrator.ErrRefused) {
			t.Errorf("%s: %v, want refused", name, err)
		}
	}
}
