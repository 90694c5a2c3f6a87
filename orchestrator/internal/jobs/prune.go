package jobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

// Prune removes the control directories, logs included, in which nothing has
// changed since before. Those of the attempts in keep stay, however old: what a
// running job did stands only there; so does one whose supervisor lives. It
// goes on past a directory that cannot be removed and names all of those.
func Prune(ctx context.Context, dataDir string, before time.Time, keep map[orchestrator.AttemptID]bool) error {
	root := controlRoot(dataDir)
	entries, err := os.ReadDir(root)
	if err != nil {
		return ignoreMissing(fmt.Errorf("prune logs: %w", err))
	}
	var errs []error
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if keep[orchestrator.AttemptID(e.Name())] {
			continue
		}
		dir := filepath.Join(root, e.Name())
		if stale, err := untouchedSince(dir, before); err != nil || !stale {
			errs = append(errs, ignoreMissing(err))
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			errs = append(errs, fmt.Errorf("prune logs: %w", err))
		}
	}
	return errors.Join(errs...)
}

// untouchedSince reports whether nothing in an attempt's directory is younger
// than before and none of its phases is locked.
func untouchedSince(dir string, before time.Time) (bool, error) {
	stale := true
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if !info.ModTime().Before(before) {
			stale = false
			return fs.SkipAll
		}
		if d.Name() == "lock" {
			f, err := control{filepath.Dir(path)}.tryLock(false)
			if err != nil {
				return err
			}
			if f == nil {
				stale = false
				return fs.SkipAll
			}
			return f.Close()
		}
		return nil
	})
	return stale, err
}
