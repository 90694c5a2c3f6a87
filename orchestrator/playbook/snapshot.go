// Package playbook makes the snapshot of a playbook root: the tree that a run
// takes along, as a deterministic tar archive and a digest that names its
// content. Whoever starts a run makes it where the playbook lies and uploads
// it; the daemon unpacks it into a job's private directory.
//
// Left out, at any depth: `*.tfstate*`, `*.tfvars*`, `.terraform*` and `.git`,
// which may hold secrets no play should see, `__pycache__`, which running a
// play by hand writes, the links of `exocomp inventory link`, and whatever is no
// file, directory or symbolic link.
package playbook

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/exocomp/exocomp/orchestrator"
)

const (
	// MaxSize bounds the files of a snapshot together.
	MaxSize = 64 << 20
	// MaxEntries bounds its files, directories and symbolic links together.
	MaxEntries = 50_000
	// maxPath bounds a path below the root: Linux takes 4096 bytes, and a job's
	// directory stands before it.
	maxPath = 2048
	// maxArchive bounds the archive: a header and padding an entry.
	maxArchive = MaxSize + MaxEntries*(maxPath+2048)
)

// Snapshot is a playbook root at one moment, held in memory. It is immutable.
type Snapshot struct {
	// Digest is `sha256:<hex>` over names, kinds, the executable bit and content,
	// so it changes with what a play can see and with nothing else: not with
	// times, owners or the machine.
	Digest   string
	Playbook string // the playbook's path below the root, with slashes
	Size     int64  // bytes of all files
	Files    int    // number of files
	archive  []byte
}

// ArchiveSize returns how many bytes the archive has; Size counts the files.
func (s *Snapshot) ArchiveSize() int64 { return int64(len(s.archive)) }

// NewReader returns a reader of the archive, from its beginning.
func (s *Snapshot) NewReader() io.Reader { return bytes.NewReader(s.archive) }

// Take makes the snapshot of root for the playbook at rel below it, as [Root]
// returns them. Symbolic links are kept if they stay inside the tree. User
// mistakes come back together in one [orchestrator.CodeInvalid] error, each
// with its place; a missing playbook is not-found.
func Take(ctx context.Context, root, rel string) (*Snapshot, error) {
	if err := checkPlaybook(root, rel); err != nil {
		return nil, err
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, orchestrator.Errorf(orchestrator.CodeInvalid, "open playbook root: %w", err)
	}
	defer dir.Close()
	t, err := scan(ctx, dir)
	if err != nil {
		return nil, err
	}
	if kind, ok := t.resolve(rel); !ok || kind != kindFile {
		return nil, orchestrator.Errorf(orchestrator.CodeInvalid, "playbook %s is left out of the snapshot of %s", rel, root).
			WithHint("rename it: *.tfstate*, *.tfvars*, .terraform* and .git never travel with a run")
	}
	s := &Snapshot{Playbook: rel}
	var out bytes.Buffer
	out.Grow(int(t.size) + len(t.entries)*1024)
	if err := t.pack(ctx, dir, &out, s); err != nil {
		return nil, err
	}
	s.archive = out.Bytes()
	s.Digest = digest(t.entries)
	return s, nil
}

// checkPlaybook refuses a path that is not a file's below root.
func checkPlaybook(root, rel string) error {
	switch {
	case rel == "" || !fs.ValidPath(rel) || rel == ".":
		return orchestrator.Errorf(orchestrator.CodeInvalid, "playbook path %q does not lie below %s", rel, root)
	case strings.HasPrefix(rel, "-"):
		return orchestrator.Errorf(orchestrator.CodeInvalid, "playbook %q begins with a dash and would be read as an option", rel).
			WithHint("rename it")
	}
	at := filepath.Join(root, filepath.FromSlash(rel))
	switch info, err := os.Stat(at); {
	case errors.Is(err, fs.ErrNotExist):
		return orchestrator.Errorf(orchestrator.CodeNotFound, "no playbook at %s", at)
	case err != nil:
		return orchestrator.Errorf(orchestrator.CodeInvalid, "read playbook: %w", err)
	case !info.Mode().IsRegular():
		return orchestrator.Errorf(orchestrator.CodeInvalid, "playbook %s is not a regular file", at)
	}
	return nil
}

// excluded reports whether a name never travels with a run.
func excluded(name string) bool {
	return name == ".git" || name == "__pycache__" || strings.HasPrefix(name, ".terraform") ||
		strings.Contains(name, ".tfstate") || strings.Contains(name, ".tfvars")
}

// laid reports whether a link is one of those by which `exocomp inventory link`
// gives a directory of playbooks an inventory: a run brings its own.
func laid(d fs.DirEntry) bool {
	return d.Type() == fs.ModeSymlink && (d.Name() == "exocomp-inventory" || strings.HasPrefix(d.Name(), orchestrator.InventoryPrefix))
}

// badPath returns why a path cannot stand in a snapshot, or nothing.
func badPath(p string) string {
	switch {
	case !utf8.ValidString(p):
		return "its name is not valid UTF-8"
	case strings.IndexFunc(p, unicode.IsControl) >= 0:
		return "its name holds a line break or another control character"
	case len(p) > maxPath:
		return fmt.Sprintf("its path is longer than %d bytes", maxPath)
	}
	return ""
}

// scan lists what of dir a snapshot holds, without reading any file.
func scan(ctx context.Context, dir *os.Root) (*tree, error) {
	t := newTree()
	var m mistakes
	err := fs.WalkDir(listing{dir.FS(), dir}, ".", func(p string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			m.addf("%s: cannot be read: %v", quote(p), cause(err))
			return skip(d)
		}
		if p == "." {
			return nil
		}
		if excluded(d.Name()) || laid(d) {
			return skip(d)
		}
		kind, ok := kindOf(d.Type())
		if !ok {
			return nil
		}
		if reason := badPath(p); reason != "" {
			m.addf("%s: %s: rename it", quote(p), reason)
			return skip(d)
		}
		e := entry{path: p, kind: kind}
		switch kind {
		case kindFile:
			info, err := d.Info()
			if err != nil {
				m.addf("%s: cannot be read: %v", quote(p), cause(err))
				return nil
			}
			e.size, e.executable = info.Size(), info.Mode()&0o100 != 0
		case kindLink:
			if e.target, err = dir.Readlink(p); err != nil {
				m.addf("%s: cannot be read: %v", quote(p), cause(err))
				return nil
			}
			e.target = filepath.ToSlash(e.target)
		}
		t.add(e)
		if len(t.entries) > MaxEntries {
			return t.tooLarge(fmt.Sprintf("more than %d files and directories", MaxEntries))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if t.size > MaxSize {
		return nil, t.tooLarge(fmt.Sprintf("%s of files", mib(t.size)))
	}
	t.escaping(&m)
	if err := m.err(); err != nil {
		return nil, err
	}
	t.sort()
	return t, nil
}

// skip leaves out a directory with all that it holds, or one file.
func skip(d fs.DirEntry) error {
	if d != nil && d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// cause takes the path off an error whose place is named already.
func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// pack writes the archive of the tree and notes the hash of each file.
func (t *tree) pack(ctx context.Context, dir *os.Root, out io.Writer, s *Snapshot) error {
	w := tar.NewWriter(out)
	for i := range t.entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		e := &t.entries[i]
		var content []byte
		if e.kind == kindFile {
			var err error
			if content, err = read(dir, e.path, MaxSize-s.Size); err != nil {
				return err
			}
			e.size = int64(len(content))
			e.hash(content)
			s.Size += e.size
			s.Files++
		}
		if err := w.WriteHeader(e.header()); err != nil {
			return fmt.Errorf("pack %s: %w", e.path, err)
		}
		if _, err := w.Write(content); err != nil {
			return fmt.Errorf("pack %s: %w", e.path, err)
		}
	}
	return w.Close()
}

// quote shows a path in a message: as it is, or quoted if that could mislead.
func quote(p string) string {
	if q := fmt.Sprintf("%q", p); q != `"`+p+`"` || strings.ContainsAny(p, " :") {
		return q
	}
	return path.Clean(p)
}
