// Package durable writes files so that a crash leaves the old content or the
// new, never half of it: a temporary file beside the target, fsync, rename,
// fsync of the directory. It reads what people name so that nothing but a file is
// ever waited for ([OpenRegular]), and removes whole trees ([RemoveTree]).
package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Modes of everything that exocomp creates.
const (
	PrivateFile fs.FileMode = 0o600 // the ledger, keys, logs, inventories
	PrivateDir  fs.FileMode = 0o700
	GroupFile   fs.FileMode = 0o640 // a token that a group reads
	SharedFile  fs.FileMode = 0o644 // a person's, without a secret
)

// tempPrefix marks unfinished files; [Sweep] removes what a crash left.
const tempPrefix = ".exocomp-tmp-"

// WriteFile replaces the file at path with data. The mode holds whatever the
// umask is. On error the old file stands and no temporary file is left.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	return Receive(path, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Receive is [WriteFile] with what fill writes. An error of fill is returned
// as it is, wrapped, and leaves everything as it was.
func Receive(path string, mode fs.FileMode, fill func(io.Writer) error) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, tempPrefix+"*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, err)
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if err := fill(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return SyncDir(dir)
}

// Mkdir makes path and its parents with [PrivateDir] and makes their names
// durable. An existing directory is left as it is.
func Mkdir(path string) error {
	var missing []string
	for p := filepath.Clean(path); ; p = filepath.Dir(p) {
		if _, err := os.Stat(p); err == nil {
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("make directory %s: %w", path, err)
		}
		missing = append(missing, p)
		if p == filepath.Dir(p) {
			break
		}
	}
	for i := len(missing) - 1; i >= 0; i-- {
		if err := os.Mkdir(missing[i], PrivateDir); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make directory %s: %w", path, err)
		}
		if err := SyncDir(filepath.Dir(missing[i])); err != nil {
			return fmt.Errorf("make directory %s: %w", path, err)
		}
	}
	return nil
}

// SyncDir makes the names in dir durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	return nil
}

// Remove removes the file at path durably; a file that is not there is no
// error.
func Remove(path string) error {
	if err := os.Remove(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("remove file: %w", err)
	}
	return SyncDir(filepath.Dir(path))
}

// Sweep removes the temporary files that a crash left in dir, which need not
// be there.
func Sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("sweep: %w", err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), tempPrefix) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("sweep: %w", err)
		}
	}
	return nil
}
