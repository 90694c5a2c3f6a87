package durable_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

// A test of this hangs where the function does.
func TestOnlyARegularFileIsOpened(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("file"), []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(at("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	for name, target := range map[string]string{"link": "file", "pipelink": "pipe"} {
		if err := os.Symlink(target, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		at("file"):     "",
		at("link"):     "",
		os.DevNull:     "",
		at("pipe"):     "not a regular file but a named pipe",
		at("pipelink"): "not a regular file but a named pipe",
		at("socket"):   "not a regular file but a socket",
		dir:            "not a regular file but a directory",
		"/dev/zero":    "not a regular file but a device",
		at("missing"):  "no such file or directory",
	} {
		data, err := durable.ReadRegular(path, 5)
		if want == "" {
			if empty := path == os.DevNull; err != nil || !empty && string(data) != "12345" || empty && len(data) > 0 {
				t.Errorf("%s: %q, %v", path, data, err)
			}
			continue
		}
		var place *fs.PathError
		if !errors.As(err, &place) || place.Path != path || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want the path and %q", path, err, want)
		}
	}
	if _, err := durable.ReadRegular(at("file"), 4); err == nil || !strings.Contains(err.Error(), at("file")+": larger than") {
		t.Errorf("a file that is too large: %v", err)
	}
}
