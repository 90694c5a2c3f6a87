package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// install makes content, as an ansible-galaxy would, the current one.
func (v *vendor) install(t *testing.T) string {
	t.Helper()
	content := filepath.Join(v.scratch(), "content")
	if err := os.MkdirAll(content, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := v.put(content)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestVendoredContentThatCannotBeToldIsAnError(t *testing.T) {
	v, err := openVendor(filepath.Join(t.TempDir(), "vendor"))
	if err != nil {
		t.Fatal(err)
	}
	if dir, err := v.current(); dir != "" || err != nil {
		t.Errorf("nothing vendored: %q, %v", dir, err)
	}
	file := filepath.Join(v.dir, vendorCurrent)
	for what, spoil := range map[string]func() error{
		"an empty file":      func() error { return os.WriteFile(file, nil, 0o600) },
		"a directory's name": func() error { return os.WriteFile(file, []byte("..\n"), 0o600) },
		"another place":      func() error { return os.WriteFile(file, []byte("A/../../B\n"), 0o600) },
		"a directory":        func() error { return os.Mkdir(file, 0o700) },
		"what is gone":       func() error { return os.WriteFile(file, []byte("GONE\n"), 0o600) },
	} {
		want := v.install(t)
		if dir, err := v.current(); dir != want || err != nil {
			t.Fatalf("%q, %v, want %s", dir, err, want)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		dir, err := v.current()
		if f := orchestrator.FailureOf(err); f == nil || f.Code != orchestrator.CodeFailed || f.Hint == "" {
			t.Errorf("%s: %q, %v, want an error that says what to do", what, dir, err)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}

// What is not current goes with the next maintenance, but not below a running job.
func TestPruneDropsVendoredContentThatIsNotCurrent(t *testing.T) {
	d := bare(t)
	there := func() []string {
		entries, err := os.ReadDir(d.vendor.dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			if e.IsDir() {
				names = append(names, filepath.Join(d.vendor.dir, e.Name()))
			}
		}
		return names
	}
	old, now := d.vendor.install(t), d.vendor.install(t)
	if err := os.Remove(d.vendor.scratch()); err != nil {
		t.Fatal(err)
	}
	d.submit(t)
	job := d.claim(t)
	prune := func() { d.prune(t.Context(), job.StartedAt) }
	if prune(); !slices.Contains(there(), old) {
		t.Error("it went below a running job")
	}
	d.finish(t, job, orchestrator.Outcome{})
	d.vendor.busy.Lock()
	if prune(); !slices.Contains(there(), old) {
		t.Error("it went while something was installed")
	}
	d.vendor.busy.Unlock()
	if prune(); !slices.Equal(there(), []string{now}) {
		t.Errorf("left %v, want only %s", there(), now)
	}
	if err := os.WriteFile(filepath.Join(d.vendor.dir, vendorCurrent), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if prune(); !slices.Equal(there(), []string{now}) {
		t.Errorf("left %v; what is current was not told", there())
	}
}
