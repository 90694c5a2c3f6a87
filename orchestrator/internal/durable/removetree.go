package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// RemoveTree removes path with all that is below it, as [os.RemoveAll] does,
// and also where directories of it are closed to their owner: Go's module cache
// and others write-protect theirs. No link is followed. What uses the tree must
// have ended.
func RemoveTree(path string) error {
	err := os.RemoveAll(path)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if openErr := openDirs(path); openErr != nil {
		return errors.Join(err, openErr)
	}
	return os.RemoveAll(path)
}

// openDirs gives their owner every right to path and the directories below it.
// Nothing outside of path's own directory is touched, whatever links say.
func openDirs(path string) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	// A directory is visited before it is read, so it can be opened in time.
	return fs.WalkDir(root.FS(), filepath.Base(path), func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil || info.Mode()&PrivateDir == PrivateDir {
			return err
		}
		return root.Chmod(p, PrivateDir)
	})
}
