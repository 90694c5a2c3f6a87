package playbook

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
)

// markers are what a playbook root holds, and whether that is a directory; nil
// where either will do (`.git` is a file in a worktree).
var markers = []struct {
	name string
	is   func(fs.FileMode) bool
}{
	{"ansible.cfg", fs.FileMode.IsRegular},
	{"roles", fs.FileMode.IsDir},
	{"requirements.yml", fs.FileMode.IsRegular},
	{".git", nil},
}

// Root finds the directory that belongs to a playbook: its nearest ancestor
// that holds ansible.cfg, roles/, requirements.yml or .git, else the
// playbook's own. It returns that directory, absolute and without symbolic
// links, and the playbook's path below it, with slashes.
//
// The search ends below the home directory and below the file system's root,
// which are never a playbook root, whatever lies in them: a `.git` for dotfiles
// must not send a whole home away. A playbook that lies right in one of them is
// refused.
//
// Errors: not-found with the absolute path that was looked at, else invalid.
func Root(playbookPath string) (root, rel string, err error) {
	if playbookPath == "" {
		return "", "", orchestrator.Errorf(orchestrator.CodeInvalid, "no playbook is named")
	}
	path, err := filepath.Abs(playbookPath)
	if err != nil {
		return "", "", orchestrator.Errorf(orchestrator.CodeInvalid, "find playbook %q: %w", playbookPath, err)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", "", orchestrator.Errorf(orchestrator.CodeNotFound, "no playbook at %s", path).
			WithHint("give the path of a playbook, absolute or from the current directory")
	case err != nil:
		return "", "", orchestrator.Errorf(orchestrator.CodeInvalid, "read playbook: %w", err)
	case info.IsDir():
		return "", "", orchestrator.Errorf(orchestrator.CodeInvalid, "%s is a directory", path).
			WithHint("name the playbook in it, such as %s", filepath.Join(path, "site.yml"))
	case !info.Mode().IsRegular():
		return "", "", orchestrator.Errorf(orchestrator.CodeInvalid, "%s is not a regular file", path)
	}
	own, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", "", orchestrator.Errorf(orchestrator.CodeInvalid, "find the directory of playbook %s: %w", path, err)
	}
	tooWide := wideDirs()
	if tooWide[own] || filepath.Dir(own) == own {
		return "", "", orchestrator.Errorf(orchestrator.CodeInvalid,
			"playbook %s lies right in %s, and a run takes the playbook's whole directory along", path, own).
			WithHint("move it into a directory of its own")
	}
	root = own
	for dir := own; !tooWide[dir] && filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		if isRoot(dir) {
			root = dir
			break
		}
	}
	rel, err = filepath.Rel(root, filepath.Join(own, filepath.Base(path)))
	if err != nil {
		return "", "", orchestrator.Errorf(orchestrator.CodeInternal, "find playbook %s below %s: %w", path, root, err)
	}
	return root, filepath.ToSlash(rel), nil
}

// wideDirs returns the home directory, as it is named and as it is.
func wideDirs() map[string]bool {
	wide := map[string]bool{}
	home, err := os.UserHomeDir()
	if err != nil || strings.TrimSpace(home) == "" {
		return wide
	}
	wide[filepath.Clean(home)] = true
	if real, err := filepath.EvalSymlinks(home); err == nil {
		wide[real] = true
	}
	return wide
}

func isRoot(dir string) bool {
	for _, m := range markers {
		info, err := os.Stat(filepath.Join(dir, m.name))
		if err == nil && (m.is == nil || m.is(info.Mode())) {
			return true
		}
	}
	return false
}
