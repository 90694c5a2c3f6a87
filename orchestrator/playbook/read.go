package playbook

import (
	"cmp"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/exocomp/exocomp/orchestrator"
)

// open opens a file or directory below dir without ever waiting: what was a file
// when it was listed may be a named pipe by now, and opening one lasts until
// somebody writes to it, whatever signal comes.
func open(dir *os.Root, p string) (*os.File, error) {
	return dir.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// listing is the file system below a root for a walk that never waits.
type listing struct {
	fs.FS
	dir *os.Root
}

// ReadDir implements [fs.ReadDirFS].
func (l listing) ReadDir(name string) ([]fs.DirEntry, error) {
	f, err := open(l.dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, err
}

// read returns a file of at most limit bytes. It never leaves dir, follows no
// link and waits for nobody, whatever has become of the path since it was listed.
func read(dir *os.Root, p string, limit int64) ([]byte, error) {
	unreadable := func(err error) error {
		return orchestrator.Errorf(orchestrator.CodeInvalid, "%s: cannot be read: %v", quote(p), cause(err))
	}
	changed := orchestrator.Errorf(orchestrator.CodeInvalid, "%s: changed while the snapshot was made", quote(p)).WithHint("try again")
	listed, err := dir.Lstat(p)
	if err != nil {
		return nil, unreadable(err)
	}
	if !listed.Mode().IsRegular() {
		return nil, changed
	}
	f, err := open(dir, p)
	if err != nil {
		return nil, unreadable(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || !os.SameFile(info, listed) {
		return nil, changed
	}
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, unreadable(err)
	}
	if int64(len(content)) > limit {
		return nil, orchestrator.Errorf(orchestrator.CodeInvalid, "%s: grew while the snapshot was made, over %s", quote(p), mib(MaxSize)).
			WithHint("try again")
	}
	return content, nil
}
