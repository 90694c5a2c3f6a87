package playbook

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
)

// kind is what an entry of a snapshot is; the letter stands in the digest.
type kind byte

const (
	kindFile kind = 'f'
	kindDir  kind = 'd'
	kindLink kind = 'l'
)

func kindOf(mode fs.FileMode) (kind, bool) {
	switch mode.Type() {
	case 0:
		return kindFile, true
	case fs.ModeDir:
		return kindDir, true
	case fs.ModeSymlink:
		return kindLink, true
	}
	return 0, false
}

// Modes in the archive. They say no more than whether a file is executable.
const (
	modePlain      = 0o644
	modeExecutable = 0o755
)

// entry is a file, directory or symbolic link of a snapshot.
type entry struct {
	path       string // below the root, clean, with slashes
	kind       kind
	executable bool
	size       int64
	target     string // of a link
	content    [sha256.Size]byte
}

func (e *entry) hash(content []byte) { e.content = sha256.Sum256(content) }

func (e *entry) header() *tar.Header {
	h := &tar.Header{Format: tar.FormatPAX, Name: e.path, Size: e.size, Mode: modePlain, Typeflag: tar.TypeReg}
	switch {
	case e.kind == kindDir:
		h.Name, h.Mode, h.Typeflag = e.path+"/", modeExecutable, tar.TypeDir
	case e.kind == kindLink:
		h.Linkname, h.Mode, h.Typeflag = e.target, 0o777, tar.TypeSymlink
	case e.executable:
		h.Mode = modeExecutable
	}
	return h
}

// digestVersion begins what is hashed, so that another scheme gives other digests.
const digestVersion = "exocomp snapshot 1\n"

// digest returns `sha256:<hex>` over sorted entries. Every field has its length
// before it, so no two trees are hashed alike.
func digest(entries []entry) string {
	h := sha256.New()
	h.Write([]byte(digestVersion))
	field := func(s string) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	for _, e := range entries {
		field(e.path)
		mode := string(rune(e.kind))
		if e.executable {
			mode += "x"
		}
		field(mode)
		switch e.kind {
		case kindFile:
			field(string(e.content[:]))
		case kindLink:
			field(e.target)
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// tree is the content of a snapshot.
type tree struct {
	entries []entry
	index   map[string]int
	size    int64
}

func newTree() *tree { return &tree{index: map[string]int{}} }

func (t *tree) add(e entry) {
	t.index[e.path] = len(t.entries)
	t.entries = append(t.entries, e)
	t.size += e.size
}

// sort orders the entries by path, so that a directory comes before what it holds.
func (t *tree) sort() {
	slices.SortFunc(t.entries, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	for i, e := range t.entries {
		t.index[e.path] = i
	}
}

// maxLinks bounds how many links one path may lead over, as Linux does.
const maxLinks = 40

// resolve follows p over links. ok is false where it leaves the tree, runs in
// circles, or leads through a file; what is not there has kind 0.
func (t *tree) resolve(p string) (kind, bool) {
	rest := strings.Split(p, "/")
	var at []string // resolved so far, link-free
	links := 0
	last := kindDir
	for len(rest) > 0 {
		next := rest[0]
		rest = rest[1:]
		switch next {
		case "", ".":
			continue
		case "..":
			if len(at) == 0 {
				return 0, false
			}
			at, last = at[:len(at)-1], kindDir
			continue
		}
		if last == kindFile {
			return 0, false
		}
		at = append(at, next)
		i, ok := t.index[strings.Join(at, "/")]
		if !ok {
			last = 0 // from here on there is nothing; .. may still lead back
			continue
		}
		e := t.entries[i]
		last = e.kind
		if e.kind == kindLink {
			if links++; links > maxLinks || path.IsAbs(e.target) {
				return 0, false
			}
			at, last = at[:len(at)-1], kindDir
			rest = slices.Concat(strings.Split(e.target, "/"), rest)
		}
	}
	return last, true
}

// escaping adds every link that leaves the tree to m.
func (t *tree) escaping(m *mistakes) {
	for _, e := range t.entries {
		if e.kind != kindLink {
			continue
		}
		switch _, ok := t.resolve(e.path); {
		case path.IsAbs(e.target):
			m.addf("%s: is a symbolic link to the absolute path %s: link relatively, inside the playbook root, or copy the file",
				quote(e.path), quote(e.target))
		case !ok:
			m.addf("%s: is a symbolic link to %s, which does not stay inside the playbook root: copy what it points to",
				quote(e.path), quote(e.target))
		}
	}
}

// tooLarge names what makes the tree large and what to do.
func (t *tree) tooLarge(what string) error {
	type part struct {
		name  string
		size  int64
		count int
	}
	parts := map[string]*part{}
	for _, e := range t.entries {
		top, _, _ := strings.Cut(e.path, "/")
		p := parts[top]
		if p == nil {
			p = &part{name: top}
			parts[top] = p
		}
		p.size += e.size
		p.count++
	}
	largest := make([]*part, 0, len(parts))
	for _, p := range parts {
		largest = append(largest, p)
	}
	slices.SortFunc(largest, func(a, b *part) int {
		// Weigh a file like 1 KiB, so that many small ones count too.
		if c := (b.size + int64(b.count)<<10) - (a.size + int64(a.count)<<10); c != 0 {
			return int(max(-1, min(1, c)))
		}
		return strings.Compare(a.name, b.name)
	})
	var names []string
	for _, p := range largest[:min(5, len(largest))] {
		names = append(names, fmt.Sprintf("%s (%s in %d entries)", quote(p.name), mib(p.size), p.count))
	}
	return orchestrator.Errorf(orchestrator.CodeInvalid, "the playbook root has %s; a run takes %s and %d entries along; the largest are %s",
		what, mib(MaxSize), MaxEntries, strings.Join(names, ", ")).
		WithHint("move what no play reads out of the playbook root, or give the playbook a directory of its own with an ansible.cfg in it")
}

// mib shows a size.
func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
