package jobs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"

	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

// An attempt's log keeps its head and its tail. The head is the file `log`;
// when it is full, `log.<offset>` files follow, each beginning at that offset
// of the whole stream, and the oldest of them goes when they become too many.
// Offsets therefore never shift, and a reader sees where a piece is missing.
const (
	logHead     = 8 << 20 // bytes of the head
	logSegment  = 1 << 20 // bytes of a piece of the tail
	logSegments = 8       // pieces that are kept
)

const logName = "log"

// segment is a piece of a log's tail.
type segment struct {
	path  string
	start int64 // offset of its first byte in the whole stream
}

// logSegmentsIn lists the pieces of the tail, oldest first.
func logSegmentsIn(dir string) ([]segment, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []segment
	for _, e := range entries {
		offset, ok := strings.CutPrefix(e.Name(), logName+".")
		if !ok {
			continue
		}
		if start, err := strconv.ParseInt(offset, 10, 64); err == nil {
			list = append(list, segment{filepath.Join(dir, e.Name()), start})
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].start < list[j].start })
	return list, nil
}

// logWriter appends to an attempt's log. Several may write at once, in several
// processes: each call holds a lock on the head.
type logWriter struct{ dir string }

// Write appends p. What is cut is cut at the end of a line where there is one.
func (w logWriter) Write(p []byte) (n int, err error) {
	head, err := os.OpenFile(filepath.Join(w.dir, logName), os.O_CREATE|os.O_WRONLY|os.O_APPEND, durable.PrivateFile)
	if err != nil {
		return 0, fmt.Errorf("open log: %w", err)
	}
	defer func() { err = errors.Join(err, head.Close()) }()
	if err := syscall.Flock(int(head.Fd()), syscall.LOCK_EX); err != nil {
		return 0, fmt.Errorf("lock log: %w", err)
	}
	segs, err := logSegmentsIn(w.dir)
	if err != nil {
		return 0, fmt.Errorf("list log: %w", err)
	}
	for n < len(p) {
		took, full, err := appendUpTo(head, segs, p[n:])
		n += took
		if err != nil {
			return n, fmt.Errorf("write log: %w", err)
		}
		if full {
			if segs, err = w.roll(head, segs); err != nil {
				return n, fmt.Errorf("begin a new piece of the log: %w", err)
			}
		}
	}
	return n, nil
}

// appendUpTo writes as much of p as the newest piece takes, the head being the
// newest where there is no other, and reports whether it is full then.
func appendUpTo(head *os.File, segs []segment, p []byte) (n int, full bool, err error) {
	f, limit := head, int64(logHead)
	if len(segs) > 0 {
		limit = logSegment
		f, err = os.OpenFile(segs[len(segs)-1].path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return 0, false, err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
	}
	info, err := f.Stat()
	if err != nil {
		return 0, false, err
	}
	room := limit - info.Size()
	if int64(len(p)) > room {
		full = true
		fits := p[:max(0, room)]
		if i := bytes.LastIndexByte(fits, '\n'); i >= 0 || len(p) <= logSegment {
			fits = fits[:i+1]
		}
		p = fits
	}
	n, err = f.Write(p)
	return n, full, err
}

// roll makes a new piece after the newest one and removes those that are too
// many.
func (w logWriter) roll(head *os.File, segs []segment) ([]segment, error) {
	end, err := logEnd(head.Name(), segs)
	if err != nil {
		return nil, err
	}
	next := segment{filepath.Join(w.dir, fmt.Sprintf("%s.%020d", logName, end)), end}
	f, err := os.OpenFile(next.path, os.O_CREATE|os.O_WRONLY, durable.PrivateFile)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	segs = append(segs, next)
	for len(segs) > logSegments {
		if err := os.Remove(segs[0].path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		segs = segs[1:]
	}
	return segs, nil
}

// logEnd returns the offset after the last byte of the stream.
func logEnd(head string, segs []segment) (int64, error) {
	last := segment{path: head}
	if len(segs) > 0 {
		last = segs[len(segs)-1]
	}
	info, err := os.Stat(last.path)
	if err != nil {
		return 0, err
	}
	return last.start + info.Size(), nil
}
