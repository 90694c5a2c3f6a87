package jobs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// maxMessageLine bounds a line that is looked into; a longer one is logged as
// it is.
const maxMessageLine = 1 << 20

// messageWriter makes a stream of JSON lines, as `tofu -json` writes them
// (https://opentofu.org/docs/internals/machine-readable-ui/), into what they say
// to people. Lines of any other form pass as they are.
type messageWriter struct {
	w    io.Writer
	line []byte
	long bool // the present line is passed through
}

func (m *messageWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part, after, whole := bytes.Cut(rest, []byte("\n"))
		rest = after
		if whole {
			part = append(part[:len(part):len(part)], '\n')
		}
		if err := m.add(part, whole); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

func (m *messageWriter) add(part []byte, whole bool) error {
	if m.long {
		m.long = !whole
		_, err := m.w.Write(part)
		return err
	}
	m.line = append(m.line, part...)
	if len(m.line) > maxMessageLine && !whole {
		m.long = true
		return m.flush()
	}
	if !whole {
		return nil
	}
	text := said(m.line)
	if text == "" {
		return m.flush()
	}
	m.line = m.line[:0]
	_, err := io.WriteString(m.w, text)
	return err
}

// flush writes what of a line is held back, as it is.
func (m *messageWriter) flush() error {
	_, err := m.w.Write(m.line)
	m.line = m.line[:0]
	return err
}

// Close writes an unfinished line and leaves the writer below open.
func (m *messageWriter) Close() error { return m.flush() }

// said returns the lines that a message is for people, or empty for what is no
// message.
func said(line []byte) string {
	var msg struct {
		Text       *string `json:"@message"`
		Diagnostic *struct {
			Detail string `json:"detail"`
			Range  *struct {
				Filename string `json:"filename"`
				Start    struct {
					Line int `json:"line"`
				} `json:"start"`
			} `json:"range"`
		} `json:"diagnostic"`
	}
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &msg) != nil || msg.Text == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString(*msg.Text + "\n")
	if d := msg.Diagnostic; d != nil {
		if d.Range != nil {
			fmt.Fprintf(&b, "  at %s:%d\n", d.Range.Filename, d.Range.Start.Line)
		}
		for text := range strings.SplitSeq(strings.TrimSpace(d.Detail), "\n") {
			if text != "" {
				b.WriteString("  " + text + "\n")
			}
		}
	}
	return b.String()
}
