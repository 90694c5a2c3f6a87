package jobs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

const (
	// lineChunk is read at once, lineTurn before something else may be looked at.
	lineChunk = 64 << 10
	lineTurn  = 4 << 20
	// maxLine bounds a line; a longer one is left out.
	maxLine = 16 << 20
)

// lineReader gives the lines of a growing file to fn.
type lineReader struct {
	path string
	fn   func(line []byte)
	file *os.File // nil until the file is there
	buf  []byte
	held []byte // the beginning of an unfinished line
	long bool   // held was given up: the line is too long
}

// pass gives the lines that are complete and reports whether there may be
// more to read at once.
func (r *lineReader) pass() (more bool, err error) {
	if r.file == nil {
		if r.file, err = os.Open(r.path); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return false, nil
			}
			return false, fmt.Errorf("follow %s: %w", r.path, err)
		}
		r.buf = make([]byte, lineChunk)
	}
	for read := 0; read < lineTurn; {
		n, err := r.file.Read(r.buf)
		read += n
		r.take(r.buf[:n])
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("follow %s: %w", r.path, err)
		}
	}
	return true, nil
}

func (r *lineReader) take(p []byte) {
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			if r.long = r.long || len(r.held)+len(p) > maxLine; r.long {
				r.held = nil
			} else {
				r.held = append(r.held, p...)
			}
			return
		}
		if !r.long {
			line := p[:i]
			if len(r.held) > 0 {
				line = append(r.held, line...)
			}
			r.fn(line)
		}
		r.held, r.long, p = r.held[:0], false, p[i+1:]
	}
}

// lineReaders are those that a tool asks for. A nil one reads nothing.
type lineReaders struct{ list []*lineReader }

func newLineReaders(t Tool, c control) *lineReaders {
	l := &lineReaders{}
	if t.OnEvent != nil {
		l.list = append(l.list, &lineReader{path: c.eventsPath(), fn: t.OnEvent})
	}
	if t.OnStdout != nil {
		l.list = append(l.list, &lineReader{path: c.stdoutPath(), fn: t.OnStdout})
	}
	return l
}

func (l *lineReaders) pass() (more bool, err error) {
	if l == nil {
		return false, nil
	}
	var errs []error
	for _, r := range l.list {
		m, err := r.pass()
		more, errs = more || m, append(errs, err)
	}
	return more, errors.Join(errs...)
}

// drain gives every line that is left. The writer is gone, so a last line
// without an end is whole too.
func (l *lineReaders) drain() error {
	for more := true; more; {
		var err error
		if more, err = l.pass(); err != nil {
			return err
		}
	}
	for _, r := range l.list {
		if len(r.held) > 0 {
			r.fn(r.held)
			r.held = nil
		}
	}
	return nil
}

func (l *lineReaders) close() {
	for _, r := range l.list {
		if r.file != nil {
			_ = r.file.Close()
		}
	}
}
