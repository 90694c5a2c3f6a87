package daemon

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/playbook"
)

// store returns a store in a directory with a file beside it that no digest may
// reach.
func store(t *testing.T) (*snapshots, string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "beside.tar"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := openSnapshots(filepath.Join(dir, "snapshots"))
	if err != nil {
		t.Fatal(err)
	}
	return s, dir
}

// files lists what lies below dir.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			found = append(found, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

func taken(t *testing.T) *playbook.Snapshot {
	t.Helper()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "site.yml"), []byte("- hosts: all\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := playbook.Take(t.Context(), root, "site.yml")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSnapshotDigestsCannotNameOtherFiles(t *testing.T) {
	s, dir := store(t)
	hex := strings.Repeat("a", 64)
	for _, digest := range []string{
		"", "sha256:", hex, "sha256:../beside", "sha256:" + hex[:63], "sha256:" + hex + "a", "sha256:" + strings.ToUpper(hex),
		"SHA256:" + hex, "sha512:" + hex, "sha256:" + hex + "\n", "\nsha256:" + hex, "sha256:" + hex[:60] + "/../", "sha256:" + hex[:63] + "\x00",
		"../../beside", "/etc/passwd", strings.Repeat("sha256:", 1<<16),
	} {
		_, open := s.Open(digest)
		_, has := s.has(digest)
		put := s.put(t.Context(), digest, taken(t).NewReader())
		for what, err := range map[string]error{"open": open, "has": has, "put": put} {
			if !errors.Is(err, orchestrator.ErrInvalid) {
				t.Errorf("%s of %.40q: error %v, want invalid", what, digest, err)
			} else if len(err.Error()) > 200 {
				t.Errorf("%s of %.40q: the error is %d bytes long", what, digest, len(err.Error()))
			}
		}
	}
	if got := files(t, dir); len(got) != 1 {
		t.Errorf("files appeared: %v", got)
	}
}

func TestSnapshotIsStoredWholeOrNotAtAll(t *testing.T) {
	s, dir := store(t)
	good := taken(t)
	other := "sha256:" + strings.Repeat("0", 64)
	var archive bytes.Buffer
	if _, err := archive.ReadFrom(good.NewReader()); err != nil {
		t.Fatal(err)
	}
	// A byte into the file's content, which follows a header of 512 bytes; what
	// is missing at the very end of an archive is only padding.
	broken := errors.New("the connection broke")
	for name, tt := range map[string]struct {
		digest string
		r      io.Reader
	}{
		"another content": {other, good.NewReader()},
		"nothing":         {good.Digest, strings.NewReader("")},
		"no archive":      {good.Digest, strings.NewReader("hello")},
		"cut short":       {good.Digest, bytes.NewReader(archive.Bytes()[:515])},
		"broken":          {good.Digest, io.MultiReader(bytes.NewReader(archive.Bytes()[:515]), failing{broken})},
	} {
		if err := s.put(t.Context(), tt.digest, tt.r); err == nil {
			t.Errorf("%s was stored", name)
		}
		if got := files(t, dir); len(got) != 1 {
			t.Errorf("%s left files behind: %v", name, got)
		}
	}
	if has, err := s.has(good.Digest); has || err != nil {
		t.Errorf("has before the upload: %t, %v", has, err)
	}
	if _, err := s.Open(good.Digest); !errors.Is(err, orchestrator.ErrNotFound) || orchestrator.FailureOf(err).Hint == "" {
		t.Errorf("open before the upload: %v", err)
	}
	for range 2 { // an upload may be repeated
		if err := s.put(t.Context(), good.Digest, good.NewReader()); err != nil {
			t.Fatal(err)
		}
	}
	r, err := s.Open(good.Digest)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, archive.Bytes()) {
		t.Errorf("read back %d bytes (%v), want %d", len(got), err, archive.Len())
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
