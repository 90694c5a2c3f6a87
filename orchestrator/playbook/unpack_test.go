package playbook

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

func TestUnpack(t *testing.T) {
	root := lay(t, map[string]string{"site.yml": "a", "bin/run": "b", "d/e/": "", "l -> bin/run": "", "d/up -> ../bin": "", "gone -> x": ""})
	if err := os.Chmod(filepath.Join(root, "bin/run"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := take(t, root)
	dir := filepath.Join(t.TempDir(), "new", "dir")
	got, err := Unpack(t.Context(), s.NewReader(), dir, s.Digest)
	if err != nil || got != s.Digest {
		t.Fatalf("digest %q, %v, want %q", got, err, s.Digest)
	}
	if back := take(t, dir); back.Digest != s.Digest || !bytes.Equal(archive(t, back), archive(t, s)) {
		t.Error("what was unpacked has another snapshot")
	}
	for name, want := range map[string]fs.FileMode{"site.yml": 0o600, "bin/run": 0o700, "d/e": fs.ModeDir | 0o700} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: mode %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
	if content, err := os.ReadFile(filepath.Join(dir, "d/up/run")); err != nil || string(content) != "b" {
		t.Errorf("through a link: %q, %v", content, err)
	}
	info, err := Inspect(t.Context(), s.NewReader())
	if err != nil || info.Digest != s.Digest || info.Files != s.Files || info.Size != s.Size {
		t.Errorf("inspected %+v, %v", info, err)
	}
}

func TestUnpackVerifies(t *testing.T) {
	s := take(t, lay(t, map[string]string{"site.yml": "a", "d/x": ""}))
	dir := t.TempDir()
	refuse := func(what string, data []byte) {
		t.Helper()
		if _, err := Unpack(t.Context(), bytes.NewReader(data), dir, s.Digest); !errors.Is(err, orchestrator.ErrInvalid) {
			t.Errorf("%s: error %v", what, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", what, left, err)
		}
	}
	data := archive(t, s)
	refuse("exchanged", archive(t, take(t, lay(t, map[string]string{"site.yml": "b", "d/x": ""}))))
	refuse("cut short", data[:len(data)/3])
	refuse("cut inside a file", data[:len(data)-1024-512])
	refuse("empty", nil)
	refuse("text", []byte("not an archive"))

	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Unpack(t.Context(), s.NewReader(), dir, s.Digest); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("into a directory that is not empty: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "mine")); err != nil {
		t.Errorf("a file of another: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Unpack(ctx, s.NewReader(), t.TempDir(), s.Digest); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// packed writes an archive of whatever headers say; a file holds its own name.
func packed(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.Typeflag == tar.TypeReg && h.Size == 0 {
			h.Size = int64(len(h.Name))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg && h.Size == int64(len(h.Name)) {
			if _, err := w.Write([]byte(h.Name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = w.Flush() // an archive may end before its content does
	return b.Bytes()
}

func dirHeader(name string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755}
}
func linkHeader(name, target string) tar.Header {
	return tar.Header{Name: name, Linkname: target, Typeflag: tar.TypeSymlink}
}

// hostile lists archives that no snapshot is.
func hostile(t testing.TB) map[string][]byte {
	return map[string][]byte{
		"parent":                     packed(t, tar.Header{Name: "../evil"}),
		"parent inside":              packed(t, dirHeader("a"), tar.Header{Name: "a/../../evil"}),
		"absolute":                   packed(t, tar.Header{Name: "/tmp/evil"}),
		"dot":                        packed(t, dirHeader("./")),
		"not clean":                  packed(t, tar.Header{Name: "./evil"}),
		"empty name":                 packed(t, tar.Header{Name: "", Size: 1}),
		"no directory":               packed(t, tar.Header{Name: "a/evil"}),
		"below a file":               packed(t, tar.Header{Name: "a"}, tar.Header{Name: "a/evil"}),
		"link that leaves":           packed(t, linkHeader("a", "../evil")),
		"absolute link":              packed(t, linkHeader("a", "/etc")),
		"link to itself":             packed(t, linkHeader("a", "a")),
		"link by way of a link":      packed(t, dirHeader("d"), dirHeader("d/e"), linkHeader("l", "d/e"), linkHeader("m", "l/../../../evil")),
		"link by way of nothing":     packed(t, linkHeader("l", "none/../../evil")),
		"through a link":             packed(t, linkHeader("a", "/tmp"), tar.Header{Name: "a/evil"}),
		"through a link inside":      packed(t, dirHeader("0"), linkHeader("a", "0"), tar.Header{Name: "a/evil"}),
		"over a link":                packed(t, linkHeader("a", "b"), tar.Header{Name: "a"}),
		"hard link":                  packed(t, tar.Header{Name: "a", Linkname: "/etc/passwd", Typeflag: tar.TypeLink}),
		"device":                     packed(t, tar.Header{Name: "a", Typeflag: tar.TypeBlock}),
		"fifo":                       packed(t, tar.Header{Name: "a", Typeflag: tar.TypeFifo}),
		"twice":                      packed(t, tar.Header{Name: "a"}, tar.Header{Name: "a"}),
		"out of order":               packed(t, tar.Header{Name: "b"}, tar.Header{Name: "a"}),
		"line break":                 packed(t, tar.Header{Name: "a\nb"}),
		"no UTF-8":                   packed(t, tar.Header{Name: "a\xff", Format: tar.FormatGNU}),
		"long name":                  packed(t, tar.Header{Name: strings.Repeat("a/", 1500) + "b"}),
		"too large":                  packed(t, tar.Header{Name: "a", Size: MaxSize + 1}),
		"announces more than it has": packed(t, tar.Header{Name: "a", Size: 1 << 20}),
	}
}

func TestUnpackHostile(t *testing.T) {
	for name, data := range hostile(t) {
		t.Run(name, func(t *testing.T) {
			outer := t.TempDir()
			dir := filepath.Join(outer, "in")
			if _, err := Unpack(t.Context(), bytes.NewReader(data), dir, "sha256:"); !errors.Is(err, orchestrator.ErrInvalid) {
				t.Errorf("error %v, want one of code invalid", err)
			} else if strings.Contains(err.Error(), "has digest") {
				t.Errorf("only the digest is wrong: %v", err)
			}
			if _, err := Inspect(t.Context(), bytes.NewReader(data)); !errors.Is(err, orchestrator.ErrInvalid) {
				t.Errorf("inspect: error %v, want one of code invalid", err)
			}
			if there, err := os.ReadDir(outer); err != nil || len(there) != 1 {
				t.Errorf("beside the directory: %v, %v", there, err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left %v, %v", left, err)
			}
		})
	}
}

func TestInspectManyEntries(t *testing.T) {
	headers := make([]tar.Header, 0, MaxEntries+1)
	for i := range MaxEntries + 1 {
		headers = append(headers, dirHeader(fmt.Sprintf("%06d", i)))
	}
	_, err := Inspect(t.Context(), bytes.NewReader(packed(t, headers...)))
	if !errors.Is(err, orchestrator.ErrInvalid) || !strings.Contains(err.Error(), "more than 50000 entries") {
		t.Errorf("error %v", err)
	}
}

// FuzzUnpack holds that any archive is refused or unpacks to what its digest
// says, with nothing outside and no link that leads there.
func FuzzUnpack(f *testing.F) {
	f.Add(archive(f, take(f, lay(f, map[string]string{"site.yml": "a", "d/e/": "", "d/l -> ../site.yml": "", "m -> x/y": ""}))))
	for _, data := range hostile(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Inspect(t.Context(), bytes.NewReader(data))
		if err != nil {
			if !errors.Is(err, orchestrator.ErrInvalid) {
				t.Fatalf("error %v, want one of code invalid", err)
			}
			return
		}
		outer := t.TempDir()
		dir := filepath.Join(outer, "in")
		if _, err := Unpack(t.Context(), bytes.NewReader(data), dir, s.Digest); err != nil {
			if errors.Is(err, orchestrator.ErrInvalid) {
				t.Fatalf("inspected, but not unpacked: %v", err)
			}
			return // a name or a depth that this file system does not take
		}
		if there, err := os.ReadDir(outer); err != nil || len(there) != 1 {
			t.Fatalf("beside the directory: %v, %v", there, err)
		}
		err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.Type() != fs.ModeSymlink {
				return err
			}
			if real, err := filepath.EvalSymlinks(p); err == nil && real != dir && !strings.HasPrefix(real, dir+"/") {
				t.Errorf("%s leads to %s", p, real)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
