package playbook

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

func take(t testing.TB, root string) *Snapshot {
	t.Helper()
	s, err := Take(t.Context(), root, "site.yml")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func archive(t testing.TB, s *Snapshot) []byte {
	t.Helper()
	b, err := io.ReadAll(s.NewReader())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// names lists an archive, with a mark behind what is special.
func names(t *testing.T, s *Snapshot) []string {
	t.Helper()
	var list []string
	r := tar.NewReader(s.NewReader())
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(time.Unix(0, 0)) || h.Uid != 0 || h.Uname != "" {
			t.Errorf("%s tells of its machine: %+v", h.Name, h)
		}
		name := h.Name
		if h.Typeflag == tar.TypeSymlink {
			name += " -> " + h.Linkname
		}
		if h.Typeflag == tar.TypeReg && h.Mode == 0o755 {
			name += "*"
		}
		list = append(list, name)
	}
}

func TestTake(t *testing.T) {
	root := lay(t, map[string]string{
		"site.yml": "- hosts: all\n", "roles/web/tasks/main.yml": "[]", "roles/web/files/": "", "-odd name": "x", "ünï": "y",
		"files/run.sh": "#!/bin/sh\n", "here -> files/run.sh": "", "roles/web/up -> ../../files": "", "nowhere -> gone/away": "",
		"terraform.tfstate": "s", "x.tfstate.backup": "s", "terraform.tfstate.d/a": "s", "prod.tfvars": "s", "a.auto.tfvars.json": "s",
		".terraform/providers/x": "s", ".terraform.lock.hcl": "s", ".git/config": "s", "sub/.git": "s",
		"exocomp-inventory -> tf:edge": "", "sub/tf:edge -> /usr/bin/exocomp-inventory": "", "filter_plugins/__pycache__/a.pyc": "s",
		"long/" + strings.Repeat("n", 200) + "/" + strings.Repeat("m", 200): "z",
	})
	if err := os.Chmod(filepath.Join(root, "files/run.sh"), 0o4711); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", filepath.Join(root, "agent.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	s := take(t, root)
	long := "long/" + strings.Repeat("n", 200)
	want := []string{"-odd name", "files/", "files/run.sh*", "filter_plugins/", "here -> files/run.sh", "long/", long + "/",
		long + "/" + strings.Repeat("m", 200), "nowhere -> gone/away", "roles/", "roles/web/", "roles/web/files/", "roles/web/tasks/",
		"roles/web/tasks/main.yml", "roles/web/up -> ../../files", "site.yml", "sub/", "ünï"}
	if got := names(t, s); !slices.Equal(got, want) {
		t.Errorf("archive holds\n%q, want\n%q", got, want)
	}
	if s.Files != 6 || s.Size != 28 || s.Playbook != "site.yml" {
		t.Errorf("%d files of %d bytes, playbook %q", s.Files, s.Size, s.Playbook)
	}
}

// The digest changes with what a play can see, and with nothing else.
func TestDigest(t *testing.T) {
	files := map[string]string{"site.yml": "a", "sub/x": "b", "l -> sub/x": ""}
	root := lay(t, files)
	first := take(t, root)
	again := take(t, lay(t, files))
	if first.Digest != again.Digest || !bytes.Equal(archive(t, first), archive(t, again)) {
		t.Error("equal trees have different snapshots")
	}
	change := func(what string, same bool, do func() error) {
		t.Helper()
		if err := do(); err != nil {
			t.Fatal(err)
		}
		s := take(t, root)
		if (s.Digest == first.Digest) != same {
			t.Errorf("%s: digest %s after %s", what, s.Digest, first.Digest)
		}
		first = s
	}
	at := func(name string) string { return filepath.Join(root, name) }
	change("touched", true, func() error { return os.Chtimes(at("site.yml"), time.Unix(1, 0), time.Unix(1, 0)) })
	change("made private", true, func() error { return os.Chmod(at("site.yml"), 0o600) })
	change("state beside it", true, func() error { return os.WriteFile(at("terraform.tfstate"), []byte("{}"), 0o600) })
	change("executable", false, func() error { return os.Chmod(at("site.yml"), 0o700) })
	change("content", false, func() error { return os.WriteFile(at("sub/x"), []byte("c"), 0o600) })
	change("name", false, func() error { return os.Rename(at("sub/x"), at("sub/y")) })
	change("target", false, func() error { return errors.Join(os.Remove(at("l")), os.Symlink("sub/y", at("l"))) })
	change("empty directory", false, func() error { return os.Mkdir(at("e"), 0o700) })
}

func TestTakeRefuses(t *testing.T) {
	const site = "site.yml"
	tests := []struct {
		name     string
		files    map[string]string
		playbook string
		code     orchestrator.Code
		words    []string
	}{
		{"missing playbook", map[string]string{"a": ""}, site, orchestrator.CodeNotFound, []string{"no playbook at /", "/site.yml"}},
		{"playbook outside", map[string]string{site: ""}, "../site.yml", orchestrator.CodeInvalid, []string{"does not lie below"}},
		{"playbook is the root", map[string]string{site: ""}, ".", orchestrator.CodeInvalid, []string{"does not lie below"}},
		{"playbook is a directory", map[string]string{"site.yml/x": ""}, site, orchestrator.CodeInvalid, []string{"not a regular file"}},
		{"playbook with a dash", map[string]string{"-x.yml": ""}, "-x.yml", orchestrator.CodeInvalid, []string{"dash", "rename"}},
		{"playbook left out", map[string]string{".git/site.yml": ""}, ".git/site.yml", orchestrator.CodeInvalid, []string{"left out"}},
		{"links that leave", map[string]string{site: "", "a -> ../x": "", "d/b -> ../../x": "", "c -> /etc/passwd": "", "d/in -> ../site.yml": ""}, site,
			orchestrator.CodeInvalid, []string{"a: is a symbolic link to ../x", "d/b: is", "c: is a symbolic link to the absolute path /etc/passwd"}},
		{"link by way of a link", map[string]string{site: "", "d/e/": "", "up -> d/e": "", "out -> up/../../../x": ""}, site, orchestrator.CodeInvalid, []string{"out: is"}},
		{"circle", map[string]string{site: "", "a -> b": "", "b -> a": ""}, site, orchestrator.CodeInvalid, []string{"a: is", "b: is"}},
		{"line break", map[string]string{site: "", "a\nb": ""}, site, orchestrator.CodeInvalid, []string{`"a\nb": its name holds a line break`}},
		{"no UTF-8", map[string]string{site: "", "a\xff/x": ""}, site, orchestrator.CodeInvalid, []string{`"a\xff": its name is not valid UTF-8`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Take(t.Context(), lay(t, tt.files), tt.playbook)
			if orchestrator.CodeOf(err) != tt.code {
				t.Fatalf("error %v, want one of code %s", err, tt.code)
			}
			for _, w := range tt.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q lacks %q", err, w)
				}
			}
			if strings.Contains(err.Error(), "d/in") {
				t.Errorf("error %q names a link that stays", err)
			}
		})
	}
}

func TestTakeTooLarge(t *testing.T) {
	root := lay(t, map[string]string{"site.yml": "", "venv/a": "", "venv/b": "", "small": "x"})
	for name, size := range map[string]int64{"venv/a": 40 << 20, "venv/b": 24 << 20} {
		if err := os.Truncate(filepath.Join(root, name), size); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Take(t.Context(), root, "site.yml")
	if !errors.Is(err, orchestrator.ErrInvalid) || !strings.Contains(err.Error(), "the largest are venv (64.0 MiB in 3 entries)") ||
		!strings.Contains(err.Error(), "ansible.cfg") {
		t.Errorf("error %v", err)
	}
	if err := os.Remove(filepath.Join(root, "small")); err != nil {
		t.Fatal(err)
	}
	if s := take(t, root); s.Size != MaxSize {
		t.Errorf("size %d", s.Size)
	}
}

func TestTakeCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Take(ctx, lay(t, map[string]string{"site.yml": ""}), "site.yml"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
