package ledger

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

// reserveSuffix is what the reserve's name has after the ledger's.
const reserveSuffix = ".reserve"

const (
	// reservePiece is given back at once: many times what a transaction writes,
	// so that whoever filled the disk and still writes does not get all of it.
	reservePiece = 256 << 10
	// reserveTries bounds what one transaction may use up.
	reserveTries = 4
	// reserveRefill is how often a reserve that was used is made whole again.
	reserveRefill = 10 * time.Second
	// reserveSpare is how many times its own size must be free for a reserve to
	// be made: on a small file system it would be what fills it.
	reserveSpare = 4
)

// reserve is a file beside the ledger that does nothing but take up room. When
// the disk is full it shrinks, so that what must be recorded can be: somebody's
// wish to end the job that filled it, how jobs ended, the end of the daemon. It
// is a courtesy: where it cannot be made there is none. The zero one is none.
type reserve struct {
	path string
	size int64

	mu    sync.Mutex
	whole bool
	next  time.Time // when fill looks again
}

// release gives a piece back to the file system and reports whether there was
// one.
func (r *reserve) release() bool {
	if r.size == 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f, err := os.OpenFile(r.path, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	if err := f.Truncate(max(0, info.Size()-reservePiece)); err != nil {
		return false
	}
	r.whole, r.next = false, time.Now().Add(reserveRefill)
	_ = f.Sync() // some file systems give room back with their own commit only
	return true
}

// fill makes the reserve whole, where there is room enough beside it.
func (r *reserve) fill() {
	if r.size == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.whole || time.Now().Before(r.next) {
		return
	}
	r.next = time.Now().Add(reserveRefill)
	f, err := os.OpenFile(r.path, os.O_RDWR|os.O_CREATE, durable.PrivateFile)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &fs); err != nil || int64(fs.Bavail)*fs.Bsize < reserveSpare*r.size {
		return
	}
	if err := unix.Fallocate(int(f.Fd()), 0, 0, r.size); err != nil {
		// Not every file system can: then it is written.
		if _, err := f.WriteAt(make([]byte, r.size), 0); err != nil {
			return
		}
	}
	r.whole = f.Sync() == nil
}
