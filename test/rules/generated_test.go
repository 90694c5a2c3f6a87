package rules

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestGeneratedCodeIsInSync generates the contract's code into a scratch
// directory and compares it with what is committed.
func TestGeneratedCodeIsInSync(t *testing.T) {
	base := root(t)
	scratch := t.TempDir()
	command(t, base, "tools/setup", "proto")
	cache := strings.TrimSpace(command(t, base, "tools/where", "cache"))
	t.Setenv("PATH", filepath.Join(cache, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	command(t, base, filepath.Join(cache, "bin", "buf"), "generate", "--output", scratch)

	fresh := generatedBelow(t, filepath.Join(scratch, "proto"))
	committed := generatedBelow(t, filepath.Join(base, "proto"))
	if len(fresh) == 0 {
		t.Fatal("buf generated nothing: proto/ has no contract")
	}
	for name, want := range fresh {
		got, ok := committed[name]
		switch {
		case !ok:
			t.Errorf("proto/%s is missing; run: make generate", name)
		case !bytes.Equal(got, want):
			t.Errorf("proto/%s is not what its .proto generates; run: make generate", name)
		}
	}
	for name := range committed {
		if _, ok := fresh[name]; !ok {
			t.Errorf("proto/%s is generated from nothing; remove it", name)
		}
	}
}

// generatedBelow reads the generated Go files below dir, by their path in it.
func generatedBelow(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".pb.go") {
			return nil
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(relative)] = content
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return files
}

// command runs a program in dir and returns what it printed.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}
