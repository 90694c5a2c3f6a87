package playbook

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
)

// Modes of what is unpacked: a job's own.
const (
	unpackedFile       fs.FileMode = 0o600
	unpackedExecutable fs.FileMode = 0o700
	unpackedDir        fs.FileMode = 0o700
)

// Unpack writes the snapshot that r delivers into dir, which is made if need be
// and must be empty, and returns its digest. It takes exactly the archives that
// [Snapshot] writes and trusts nothing in them: no entry or link can lead out
// of dir. want is the digest that the archive must have; if it has another, or
// is not a snapshot, the error is [orchestrator.CodeInvalid] and dir is emptied.
func Unpack(ctx context.Context, r io.Reader, dir, want string) (digest string, err error) {
	if err := os.MkdirAll(dir, unpackedDir); err != nil {
		return "", fmt.Errorf("unpack snapshot: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", fmt.Errorf("unpack snapshot: %w", err)
	}
	defer root.Close()
	if there, err := fs.ReadDir(root.FS(), "."); err != nil {
		return "", fmt.Errorf("unpack snapshot: %w", err)
	} else if len(there) > 0 {
		return "", fmt.Errorf("unpack snapshot: directory %s is not empty", dir)
	}
	s, err := receive(ctx, r, &unpacker{root})
	if err == nil && s.Digest != want {
		err = orchestrator.Errorf(orchestrator.CodeInvalid, "the snapshot has digest %s, not %s: it was damaged or exchanged on its way", s.Digest, want)
	}
	if err != nil {
		if there, e := fs.ReadDir(root.FS(), "."); e == nil {
			for _, d := range there {
				err = errors.Join(err, root.RemoveAll(d.Name()))
			}
		}
		return "", err
	}
	return s.Digest, nil
}

// Inspect reads a snapshot's archive without writing anything and returns what
// it is; Playbook is empty. It refuses what [Unpack] refuses.
func Inspect(ctx context.Context, r io.Reader) (Snapshot, error) {
	return receive(ctx, r, discard{})
}

// sink takes the entries of an archive in order; links come after all else.
type sink interface {
	dir(path string) error
	file(path string, executable bool, content io.Reader) error
	link(path, target string) error
}

// receive checks an archive and passes its entries on.
func receive(ctx context.Context, r io.Reader, to sink) (Snapshot, error) {
	archive := tar.NewReader(io.LimitReader(r, maxArchive))
	t := newTree()
	var s Snapshot
	last := ""
	for {
		if err := ctx.Err(); err != nil {
			return Snapshot{}, err
		}
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Snapshot{}, damaged("%v", err)
		}
		e, err := t.admit(h, last)
		if err != nil {
			return Snapshot{}, err
		}
		last = e.path
		switch e.kind {
		case kindDir:
			err = to.dir(e.path)
		case kindFile:
			sum := sha256.New()
			content := &counter{r: io.TeeReader(archive, sum)}
			err = to.file(e.path, e.executable, content)
			if content.err != nil {
				err = damaged("%s: %v", quote(e.path), content.err)
			}
			sum.Sum(e.content[:0])
			s.Files++
			s.Size += e.size
		}
		if err != nil {
			return Snapshot{}, err
		}
		t.add(e)
	}
	var bad mistakes
	if t.escaping(&bad); bad.count > 0 {
		return Snapshot{}, damaged("%w", bad.err())
	}
	for _, e := range t.entries {
		if e.kind == kindLink {
			if err := to.link(e.path, e.target); err != nil {
				return Snapshot{}, err
			}
		}
	}
	s.Digest = digest(t.entries)
	return s, nil
}

// admit checks a header against the form that a snapshot has and against what
// came before it.
func (t *tree) admit(h *tar.Header, last string) (entry, error) {
	e := entry{path: h.Name, size: h.Size}
	switch h.Typeflag {
	case tar.TypeDir:
		e.kind, e.path, e.size = kindDir, strings.TrimSuffix(h.Name, "/"), 0
	case tar.TypeReg:
		e.kind, e.executable = kindFile, h.Mode&0o100 != 0
	case tar.TypeSymlink:
		e.kind, e.target, e.size = kindLink, h.Linkname, 0
	default:
		return entry{}, damaged("%s: is neither a file, a directory nor a symbolic link", quote(h.Name))
	}
	switch {
	case !fs.ValidPath(e.path) || e.path == ".":
		return entry{}, damaged("%s: is not a path below the root", quote(h.Name))
	case badPath(e.path) != "":
		return entry{}, damaged("%s: %s", quote(h.Name), badPath(e.path))
	case e.kind == kindLink && (e.target == "" || badPath(e.target) != ""):
		return entry{}, damaged("%s: links to %q", quote(h.Name), e.target)
	case e.path <= last:
		return entry{}, damaged("%s: stands twice or out of order", quote(h.Name))
	case len(t.entries) >= MaxEntries:
		return entry{}, damaged("more than %d entries", MaxEntries)
	case e.size < 0 || e.size > MaxSize-t.size:
		return entry{}, damaged("more than %s of files", mib(MaxSize))
	}
	if parent := path.Dir(e.path); parent != "." {
		if i, ok := t.index[parent]; !ok || t.entries[i].kind != kindDir {
			return entry{}, damaged("%s: does not lie in a directory of the snapshot", quote(h.Name))
		}
	}
	return e, nil
}

// damaged says that an archive is not one that we wrote.
func damaged(format string, args ...any) error {
	return orchestrator.Errorf(orchestrator.CodeInvalid, "this is not a playbook snapshot: "+format, args...)
}

// counter remembers how reading failed, to tell a damaged archive from a full disk.
type counter struct {
	r   io.Reader
	err error
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	return n, err
}

// unpacker writes entries below a directory. Until the last of them no link
// exists there, so none can be followed.
type unpacker struct{ root *os.Root }

func (u *unpacker) dir(p string) error {
	if err := u.root.Mkdir(p, unpackedDir); err != nil {
		return fmt.Errorf("unpack snapshot: %w", err)
	}
	return nil
}

func (u *unpacker) file(p string, executable bool, content io.Reader) error {
	mode := unpackedFile
	if executable {
		mode = unpackedExecutable
	}
	f, err := u.root.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("unpack snapshot: %w", err)
	}
	_, err = io.Copy(f, content)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("unpack snapshot: %w", err)
	}
	return nil
}

func (u *unpacker) link(p, target string) error {
	if err := u.root.Symlink(target, p); err != nil {
		return fmt.Errorf("unpack snapshot: %w", err)
	}
	return nil
}

// discard writes nothing.
type discard struct{}

func (discard) dir(string) error          { return nil }
func (discard) link(string, string) error { return nil }
func (discard) file(_ string, _ bool, content io.Reader) error {
	_, err := io.Copy(io.Discard, content)
	return err
}
