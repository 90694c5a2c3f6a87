package playbook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// lay writes files below a new directory: a name that ends in a slash is a
// directory, `name -> target` a symbolic link. It returns the directory.
func lay(t testing.TB, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		at := filepath.Join(dir, name)
		name, target, link := strings.Cut(name, " -> ")
		parent := filepath.Dir(at)
		if link {
			parent = filepath.Join(dir, filepath.Dir(name))
		} else if strings.HasSuffix(name, "/") {
			parent = at
		}
		if err := os.MkdirAll(parent, 0o755); err != nil {
			t.Fatal(err)
		}
		switch {
		case link:
			err = os.Symlink(target, filepath.Join(dir, name))
		case !strings.HasSuffix(name, "/"):
			err = os.WriteFile(at, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRoot(t *testing.T) {
	tests := []struct {
		name      string
		files     map[string]string
		home      string // below the directory
		playbook  string
		root, rel string
	}{
		{"nothing around it", map[string]string{"p/site.yml": ""}, "", "p/site.yml", "p", "site.yml"},
		{"ansible.cfg beside it", map[string]string{"p/site.yml": "", "p/ansible.cfg": "", "ansible.cfg": ""}, "", "p/site.yml", "p", "site.yml"},
		{"ansible.cfg above", map[string]string{"p/ansible.cfg": "", "p/plays/edge/site.yml": ""}, "", "p/plays/edge/site.yml", "p", "plays/edge/site.yml"},
		{"roles above", map[string]string{"p/roles/": "", "p/plays/site.yml": ""}, "", "p/plays/site.yml", "p", "plays/site.yml"},
		{"requirements above", map[string]string{"p/requirements.yml": "", "p/plays/site.yml": ""}, "", "p/plays/site.yml", "p", "plays/site.yml"},
		{"repository above", map[string]string{"p/.git/HEAD": "", "p/plays/site.yml": ""}, "", "p/plays/site.yml", "p", "plays/site.yml"},
		{"worktree above", map[string]string{"p/.git": "gitdir: x", "p/plays/site.yml": ""}, "", "p/plays/site.yml", "p", "plays/site.yml"},
		{"a file called roles", map[string]string{"p/roles": "", "p/plays/site.yml": ""}, "", "p/plays/site.yml", "p/plays", "site.yml"},
		{"dotfiles in the home", map[string]string{"h/.git/HEAD": "", "h/plays/site.yml": ""}, "h", "h/plays/site.yml", "h/plays", "site.yml"},
		{"above the home", map[string]string{"ansible.cfg": "", "h/plays/site.yml": ""}, "h", "h/plays/site.yml", "h/plays", "site.yml"},
		{"below the home", map[string]string{"h/p/ansible.cfg": "", "h/p/plays/site.yml": ""}, "h", "h/p/plays/site.yml", "h/p", "plays/site.yml"},
		{"home by a link", map[string]string{"real/.git/": "", "real/plays/site.yml": "", "h -> real": ""}, "h", "h/plays/site.yml", "real/plays", "site.yml"},
		{"directory by a link", map[string]string{"p/ansible.cfg": "", "p/plays/site.yml": "", "l -> p/plays": ""}, "", "l/site.yml", "p", "plays/site.yml"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := lay(t, tt.files)
			home := filepath.Join(dir, tt.home)
			if tt.home == "" {
				home = filepath.Join(dir, "nobody")
			}
			t.Setenv("HOME", home)
			root, rel, err := Root(filepath.Join(dir, tt.playbook))
			if err != nil {
				t.Fatal(err)
			}
			if want := filepath.Join(dir, tt.root); root != want || rel != tt.rel {
				t.Errorf("Root = %q, %q, want %q, %q", root, rel, want, tt.rel)
			}
		})
	}
}

func TestRootRelative(t *testing.T) {
	dir := lay(t, map[string]string{"p/ansible.cfg": "", "p/plays/site.yml": ""})
	t.Chdir(filepath.Join(dir, "p", "plays"))
	root, rel, err := Root("site.yml")
	if err != nil || root != filepath.Join(dir, "p") || rel != "plays/site.yml" {
		t.Errorf("Root = %q, %q, %v", root, rel, err)
	}
}

func TestRootRefuses(t *testing.T) {
	dir := lay(t, map[string]string{"site.yml": "", "d/": ""})
	t.Setenv("HOME", dir)
	tests := []struct {
		playbook string
		code     orchestrator.Code
		words    string
	}{
		{"", orchestrator.CodeInvalid, "no playbook is named"},
		{filepath.Join(dir, "d", "missing.yml"), orchestrator.CodeNotFound, "no playbook at " + filepath.Join(dir, "d", "missing.yml")},
		{filepath.Join(dir, "d"), orchestrator.CodeInvalid, "is a directory"},
		{filepath.Join(dir, "site.yml"), orchestrator.CodeInvalid, "lies right in " + dir},
		{filepath.Join(dir, "site.yml", "x"), orchestrator.CodeInvalid, "not a directory"},
		{"/dev/null", orchestrator.CodeInvalid, "not a regular file"},
	}
	for _, tt := range tests {
		_, _, err := Root(tt.playbook)
		if orchestrator.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.words) {
			t.Errorf("Root(%q) = %v, want %s: %s", tt.playbook, err, tt.code, tt.words)
		}
	}
}
