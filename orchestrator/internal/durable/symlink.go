package durable

import (
	"fmt"
	"os"
	"path/filepath"
)

// Symlink makes the symbolic link at path lead to target, whatever it was before:
// a link or file is replaced in one step. On error the old one stands and nothing
// is left beside it.
func Symlink(target, path string) (err error) {
	dir := filepath.Dir(path)
	// A directory of its own has a name that nobody else takes.
	temp, err := os.MkdirTemp(dir, tempPrefix+"*")
	if err != nil {
		return fmt.Errorf("link %s: %w", path, err)
	}
	defer func() { _ = os.RemoveAll(temp) }()
	link := filepath.Join(temp, "link")
	if err := os.Symlink(target, link); err != nil {
		return fmt.Errorf("link %s: %w", path, err)
	}
	if err := os.Rename(link, path); err != nil {
		return fmt.Errorf("link %s: %w", path, err)
	}
	return SyncDir(dir)
}
