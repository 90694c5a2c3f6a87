package ansible

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"time"
)

// EventKind is what a line of the callback plugin tells.
type EventKind string

const (
	EventPlay    EventKind = "play"
	EventNoHosts EventKind = "no-hosts" // the play before it matched none
	EventTask    EventKind = "task"
	EventResult  EventKind = "result"
	EventStats   EventKind = "stats" // a host's totals
	EventEnd     EventKind = "end"   // the last line of a run that came to its end
)

// Status is how a task fared on a host.
type Status string

const (
	StatusOK          Status = "ok"
	StatusChanged     Status = "changed"
	StatusFailed      Status = "failed"
	StatusUnreachable Status = "unreachable"
	StatusSkipped     Status = "skipped"
)

// Event is one line of the callback plugin (seeds/exocomp_events.py says which
// kind has which fields). It was written beside code that exocomp does not
// control: nothing in it is more than a claim of that run about itself.
type Event struct {
	Kind    EventKind `json:"event"`
	Time    float64   `json:"time"` // seconds since 1970
	Play    string    `json:"play"`
	Pattern string    `json:"pattern"`
	ID      string    `json:"id"` // of the play or task
	// Hosts is how many hosts a play has, or its batch; nil if unknown.
	Hosts    *int   `json:"hosts"`
	Task     string `json:"task"`
	Implicit bool   `json:"implicit"` // fact gathering that nobody wrote
	Host     string `json:"host"`
	Status   Status `json:"status"`
	Ignored  bool   `json:"ignored"` // the failure does not count
	Message  string `json:"message"`

	// A host's totals. OK includes Changed and the fact gathering.
	OK          int `json:"ok"`
	Changed     int `json:"changed"`
	Failed      int `json:"failed"`
	Unreachable int `json:"unreachable"`
}

// maxLine bounds a line. The plugin's own are under 8 KiB.
const maxLine = 64 << 10

// parseEvent returns false for what is no event.
func parseEvent(line []byte) (Event, bool) {
	var e Event
	if len(line) > maxLine || json.Unmarshal(line, &e) != nil {
		return Event{}, false
	}
	return e, e.Kind != ""
}

// ReadEvents reads the events of a run. A last line that is cut short, and any
// line that is no event, is passed over. The error is r's.
func ReadEvents(r io.Reader) (*Progress, error) {
	p := NewProgress()
	buf := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := buf.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			if err = skipLine(buf); err == nil {
				continue
			}
			line = nil
		}
		if err == nil {
			if e, ok := parseEvent(line); ok {
				p.Add(e)
			}
			continue
		}
		if !errors.Is(err, io.EOF) {
			return p, fmt.Errorf("read events: %w", err)
		}
		if e, ok := parseEvent(line); ok {
			p.Add(e)
		}
		return p, nil
	}
}

// skipLine reads past the next line break.
func skipLine(r *bufio.Reader) error {
	for {
		_, err := r.ReadSlice('\n')
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// followInterval is how late an event may be seen.
const followInterval = 100 * time.Millisecond

// Follow yields the events of the file at path from its beginning, as they are
// written; the file may come later. It ends when ctx ends, after everything
// that was in the file by then. An error is the last thing it yields.
func Follow(ctx context.Context, path string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		var tail tail
		defer tail.close()
		tick := time.NewTicker(followInterval)
		defer tick.Stop()
		for done := false; ; {
			lines, err := tail.read(path)
			for _, line := range lines {
				if e, ok := parseEvent(line); ok && !yield(e, nil) {
					return
				}
			}
			switch {
			case err != nil:
				yield(Event{}, fmt.Errorf("follow events: %w", err))
				return
			case len(lines) > 0:
				continue // there may be more
			case done:
				return
			}
			select {
			case <-ctx.Done():
				done = true // one last look
			case <-tick.C:
			}
		}
	}
}

// tail reads whole lines from a file that grows.
type tail struct {
	file *os.File
	buf  []byte // an unfinished line
	long bool   // its beginning was dropped
}

func (t *tail) close() {
	if t.file != nil {
		_ = t.file.Close() // only read
	}
}

// read returns the lines that are complete now; none is not the end.
func (t *tail) read(path string) ([][]byte, error) {
	if t.file == nil {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		t.file = f
	}
	var lines [][]byte
	chunk := make([]byte, maxLine)
	for len(lines) == 0 {
		n, err := t.file.Read(chunk)
		t.buf = append(t.buf, chunk[:n]...)
		for {
			line, rest, found := bytes.Cut(t.buf, []byte{'\n'})
			if !found {
				break
			}
			if !t.long {
				lines = append(lines, bytes.Clone(line))
			}
			t.buf, t.long = rest, false
		}
		if len(t.buf) > maxLine {
			t.buf, t.long = nil, true
		}
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			return lines, err
		}
	}
	return lines, nil
}
