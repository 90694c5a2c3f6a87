package rpc_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/exocomp/exocomp/orchestrator/rpc/rpctest"
)

func TestSnapshotUpload(t *testing.T) {
	svc := rpctest.NewService()
	c := rpctest.Serve(t, svc).Dial()
	for _, size := range []int{0, 1, 256 << 10, 10<<20 + 3} {
		data := bytes.Repeat([]byte("s"), size)
		h := rpc.SnapshotHeader{Digest: digest, Size: int64(size)}
		if err := c.UploadSnapshot(t.Context(), h, bytes.NewReader(data)); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if got := svc.Snapshot(digest); !bytes.Equal(got, data) {
			t.Errorf("%d bytes arrived of %d", len(got), size)
		}
	}
	if has, err := c.HasSnapshot(t.Context(), digest); err != nil || !has {
		t.Errorf("has = %v, %v", has, err)
	}
}

func TestSnapshotUploadOfAnotherSizeIsRefused(t *testing.T) {
	svc := rpctest.NewService()
	c := rpctest.Serve(t, svc).Dial()
	for _, test := range []struct {
		size int64
		says string
	}{
		{4, "longer than its 4 bytes"},
		{6, "ended after 5 of 6 bytes"},
		{-1, "snapshot"},
		{rpc.MaxSnapshot + 1, "at most 256 are taken"},
	} {
		h := rpc.SnapshotHeader{Digest: digest, Size: test.size}
		err := c.UploadSnapshot(t.Context(), h, strings.NewReader("12345"))
		if !errors.Is(err, orchestrator.ErrInvalid) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("size %d: %v, want %q", test.size, err, test.says)
		}
	}
	if svc.Snapshot(digest) != nil {
		t.Error("something was kept")
	}
}

func TestSnapshotUploadBreaksOffWithItsReader(t *testing.T) {
	svc := rpctest.NewService()
	c := rpctest.Serve(t, svc).Dial()
	torn := errors.New("disk on fire")
	r := io.MultiReader(strings.NewReader("123"), iotest.ErrReader(torn))
	err := c.UploadSnapshot(t.Context(), rpc.SnapshotHeader{Digest: digest, Size: 5}, r)
	if !errors.Is(err, torn) {
		t.Errorf("got %v, want %v", err, torn)
	}
	if svc.Snapshot(digest) != nil {
		t.Error("something was kept")
	}
}

func TestUploadPlaybook(t *testing.T) {
	svc := rpctest.NewService()
	c := rpctest.Serve(t, svc).Dial()
	dir := t.TempDir()
	path := filepath.Join(dir, "site.yml")
	if _, err := c.UploadPlaybook(t.Context(), path); !errors.Is(err, orchestrator.ErrNotFound) {
		t.Fatalf("a missing playbook: %v", err)
	}
	if err := os.WriteFile(path, []byte("- hosts: all\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ref, err := c.UploadPlaybook(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if ref.Path != path || ref.Entry != "site.yml" || svc.Snapshot(ref.Digest) == nil {
		t.Errorf("uploaded %+v", ref)
	}
	if again, err := c.UploadPlaybook(t.Context(), path); err != nil || again != ref {
		t.Errorf("again: %+v, %v", again, err)
	}
}
