package provider

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the generated reference instead of comparing it")

// repository is the root of the repository, from this package's directory.
const repository = "../../.."

// TestReferenceIsInSync generates the reference from the schema and the examples
// and compares it with what is committed.
func TestReferenceIsInSync(t *testing.T) {
	t.Parallel()
	base, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	program(t, base, "tools/setup", "docs")
	cache, err := where("cache")
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, `terraform {`, `  required_providers {`, `    exocomp = { source = "exocomp/exocomp" }`, `  }`, `}`)
	cmd, out := s.command("providers", "schema", "-json")
	cmd.Stderr = nil
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	schema := filepath.Join(s.dir, "schema.json")
	// The generator looks for a provider of HashiCorp's registry, or a bare name.
	named := bytes.Replace(out.Bytes(), []byte(`"`+Address+`":`), []byte(`"exocomp":`), 1)
	if err := os.WriteFile(schema, named, 0o600); err != nil {
		t.Fatal(err)
	}
	// The generator writes below the provider's directory, so that is a copy.
	scratch := t.TempDir()
	if err := os.CopyFS(filepath.Join(scratch, "examples"), os.DirFS(filepath.Join(base, "examples"))); err != nil {
		t.Fatal(err)
	}
	program(t, scratch, filepath.Join(cache, "bin", "tfplugindocs"), "generate",
		"--provider-dir", scratch, "--provider-name", "exocomp", "--rendered-provider-name", "exocomp",
		"--providers-schema", schema, "--rendered-website-dir", "rendered")

	fresh, committed := files(t, filepath.Join(scratch, "rendered")), filepath.Join(base, "docs", "provider")
	if len(fresh) == 0 {
		t.Fatal("nothing was generated")
	}
	if *update {
		if err := os.RemoveAll(committed); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(committed, os.DirFS(filepath.Join(scratch, "rendered"))); err != nil {
			t.Fatal(err)
		}
		return
	}
	old := files(t, committed)
	for name, want := range fresh {
		if !bytes.Equal(old[name], want) {
			t.Errorf("docs/provider/%s is not what schema and examples generate; run: make docs", name)
		}
	}
	for name := range old {
		if _, ok := fresh[name]; !ok {
			t.Errorf("docs/provider/%s is generated from nothing; run: make docs", name)
		}
	}
}

// files reads the files below dir, by their path in it.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		all[name], err = os.ReadFile(filepath.Join(dir, name))
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return all
}

func program(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// TestExamplesAreValid has tofu validate each complete example, and look at the
// form of every file.
func TestExamplesAreValid(t *testing.T) {
	t.Parallel()
	examples := filepath.Join(repository, "examples")
	if code, out := (&site{t: t, dir: examples, env: os.Environ(), process: true}).tofu("fmt", "-check", "-recursive"); code != 0 {
		t.Errorf("tofu fmt would change: %s", out)
	}
	dirs, err := filepath.Glob(filepath.Join(examples, "*", "main.tf"))
	if err != nil || len(dirs) < 7 {
		t.Fatalf("found %d examples: %v", len(dirs), err)
	}
	for _, main := range dirs {
		name := filepath.Base(filepath.Dir(main))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			if err := os.CopyFS(filepath.Join(s.dir, name), os.DirFS(filepath.Dir(main))); err != nil {
				t.Fatal(err)
			}
			s.dir, s.process = filepath.Join(s.dir, name), true
			if code, out := s.tofu("validate", "-no-color"); code != 0 {
				t.Error(out)
			}
			s.env = append(s.env, "TF_VAR_address=192.0.2.11", "TF_VAR_db_password=x")
			s.apply()
			s.plan(false)
		})
	}
}
