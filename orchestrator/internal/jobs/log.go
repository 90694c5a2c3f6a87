package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
)

// Log reads an attempt's log while it is being written, or later. It holds
// nothing open and may be used by several goroutines.
//
// Offsets count the bytes that were ever written, so that a reader can go on
// where it was, also after a restart, and also where the middle was left out.
type Log struct{ dir string }

// OpenLog returns the log of an attempt. The error is
// [orchestrator.CodeNotFound] where there is none: the attempt has not begun,
// or its log was older than the retention.
func OpenLog(dataDir string, id orchestrator.AttemptID) (*Log, error) {
	dir := ControlDir(dataDir, id)
	if _, err := os.Stat(dir); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, orchestrator.Errorf(orchestrator.CodeNotFound,
				"attempt %s has no log: it has not begun, or ended more than %d days ago", id, int(orchestrator.LogRetention.Hours()/24))
		}
		return nil, fmt.Errorf("open log: %w", err)
	}
	return &Log{dir}, nil
}

func (l *Log) head() string { return filepath.Join(l.dir, logName) }

// Size returns the offset after the last byte.
func (l *Log) Size() (int64, error) {
	for {
		segs, err := logSegmentsIn(l.dir)
		if err != nil {
			return 0, fmt.Errorf("size log: %w", err)
		}
		end, err := logEnd(l.head(), segs)
		switch {
		case err == nil:
			return end, nil
		case !errors.Is(err, fs.ErrNotExist):
			return 0, fmt.Errorf("size log: %w", err)
		case len(segs) == 0:
			return 0, nil
		}
		// The newest piece went between listing and looking: look again.
	}
}

// minLogRead is the smallest buffer that Read takes: the line that stands for
// a left out piece must fit.
const minLogRead = 128

// Read fills p, of at least 128 bytes, from offset off and returns the offset
// to go on from. It returns [io.EOF] where the log ends at present. Where a
// piece was left out it returns one line that says so, and the offset behind
// the gap.
func (l *Log) Read(p []byte, off int64) (n int, next int64, err error) {
	if len(p) < minLogRead {
		return 0, off, io.ErrShortBuffer
	}
	for {
		segs, err := logSegmentsIn(l.dir)
		if err != nil {
			return 0, off, fmt.Errorf("read log: %w", err)
		}
		n, next, err := l.readFrom(segs, p, off)
		if len(segs) > 0 && errors.Is(err, fs.ErrNotExist) {
			continue // it was left out meanwhile
		}
		return n, next, err
	}
}

func (l *Log) readFrom(segs []segment, p []byte, off int64) (int, int64, error) {
	n, err := readAt(l.head(), p, off)
	if n > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return n, off + int64(n), err
	}
	for i, s := range segs {
		if off < s.start {
			mark := fmt.Sprintf("[exocomp: %d bytes of the log were left out here]\n", s.start-off)
			return copy(p, mark), s.start, nil
		}
		if i+1 < len(segs) && off >= segs[i+1].start {
			continue
		}
		n, err := readAt(s.path, p, off-s.start)
		if n > 0 || err != nil {
			return n, off + int64(n), err
		}
	}
	return 0, off, io.EOF
}

// readAt reads what a file has at off; nothing is no error.
func readAt(path string, p []byte, off int64) (int, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	n, err := f.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// Wait returns when the log is longer than off, or with the cause of ctx's end.
func (l *Log) Wait(ctx context.Context, off int64) error {
	w := watch(l.dir)
	defer w.close()
	for {
		size, err := l.Size()
		if err != nil {
			return err
		}
		if size > off {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-w.changes:
		case <-w.tick():
		}
	}
}

// lastLinesWindow bounds how far back LastLines looks.
const lastLinesWindow = 64 << 10

// LastLines returns up to n lines from the log's end.
func (l *Log) LastLines(n int) ([]string, error) {
	size, err := l.Size()
	if err != nil {
		return nil, err
	}
	from := max(0, size-lastLinesWindow)
	var text bytes.Buffer
	buf := make([]byte, 16<<10)
	for off := from; ; {
		got, next, err := l.Read(buf, off)
		text.Write(buf[:got])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		off = next
	}
	lines := strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
	if from > 0 && len(lines) > 1 {
		lines = lines[1:] // it began somewhere inside
	}
	if len(lines) == 1 && lines[0] == "" {
		return nil, nil
	}
	return lines[max(0, len(lines)-n):], nil
}
