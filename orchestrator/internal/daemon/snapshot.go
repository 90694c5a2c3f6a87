package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
	"github.com/exocomp/exocomp/orchestrator/playbook"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// snapshots keeps playbook trees by their digest.
type snapshots struct{ dir string }

const snapshotSuffix = ".tar"

func openSnapshots(dir string) (*snapshots, error) {
	if err := durable.Mkdir(dir); err != nil {
		return nil, err
	}
	return &snapshots{dir}, durable.Sweep(dir)
}

// path returns where the snapshot of a digest lies. The digest comes from a
// client and becomes a file name, so its form is checked here.
func (s *snapshots) path(digest string) (string, error) {
	hex, ok := orchestrator.ParseSnapshotDigest(digest)
	if !ok {
		return "", orchestrator.Errorf(orchestrator.CodeInvalid, "the snapshot digest %.80q is not sha256:<64 hex digits>", digest)
	}
	return filepath.Join(s.dir, hex+snapshotSuffix), nil
}

// Open returns the stored archive. The caller closes it.
func (s *snapshots) Open(digest string) (io.ReadCloser, error) {
	path, err := s.path(digest)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, orchestrator.Errorf(orchestrator.CodeNotFound, "the daemon has no playbook snapshot %s", digest).
			WithHint("submit the playbook again; exocomp provision resume uploads it anew")
	}
	return f, err
}

// has reports whether a snapshot is there. It then counts as new: who asks is
// about to submit a run with it.
func (s *snapshots) has(digest string) (bool, error) {
	path, err := s.path(digest)
	if err != nil {
		return false, err
	}
	err = os.Chtimes(path, time.Time{}, time.Now())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// prune removes the snapshots that are older than before and not among keep.
func (s *snapshots) prune(before time.Time, keep []string) error {
	kept := map[string]bool{}
	for _, digest := range keep {
		path, err := s.path(digest)
		if err != nil {
			return err
		}
		kept[path] = true
	}
	all, err := filepath.Glob(filepath.Join(s.dir, "*"+snapshotSuffix))
	if err != nil {
		return err
	}
	var errs []error
	for _, path := range all {
		info, err := os.Stat(path)
		if err == nil && !kept[path] && info.ModTime().Before(before) {
			err = durable.Remove(path)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// put stores what r yields if it is the archive of digest, whole or not at all.
func (s *snapshots) put(ctx context.Context, digest string, r io.Reader) error {
	path, err := s.path(digest)
	if err != nil {
		return err
	}
	return durable.Receive(path, durable.PrivateFile, func(w io.Writer) error {
		got, err := playbook.Inspect(ctx, io.TeeReader(r, w))
		if err != nil {
			return err
		}
		if _, err := io.Copy(w, r); err != nil {
			return fmt.Errorf("store snapshot: %w", err)
		}
		if got.Digest != digest {
			return orchestrator.Errorf(orchestrator.CodeInvalid, "the uploaded playbook has digest %s and was announced as %s", got.Digest, digest).
				WithHint("submit it again")
		}
		return nil
	})
}

// HasSnapshot implements [rpc.Snapshots].
func (d *Daemon) HasSnapshot(_ context.Context, digest string) (bool, error) {
	return d.snapshots.has(digest)
}

// UploadSnapshot implements [rpc.Snapshots].
func (d *Daemon) UploadSnapshot(ctx context.Context, header rpc.SnapshotHeader, r io.Reader) error {
	return d.snapshots.put(ctx, header.Digest, r)
}
