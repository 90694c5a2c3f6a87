package ansible

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// ParseEvent reads one line; it returns false for what is no event.
func ParseEvent(line []byte) (Event, bool) {
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
			if e, ok := ParseEvent(line); ok {
				p.Add(e)
			}
			continue
		}
		if !errors.Is(err, io.EOF) {
			return p, fmt.Errorf("read events: %w", err)
		}
		if e, ok := ParseEvent(line); ok {
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
