package tofu

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Journal is what a `tofu plan|apply -json` stream says happened
// (https://opentofu.org/docs/internals/machine-readable-ui/). A stream that
// was cut off, even inside a line, is read as far as it goes.
type Journal struct {
	Creates     []JournalCreate // creates that were started, in order
	Diagnostics []Diagnostic    // errors only
	Summary     string          // `Apply complete! Resources: 1 added, …`
	// Torn says that lines are missing: the first one, with which every stream
	// begins, or a part of one. OpenTofu goes on when it cannot write them, say
	// because the disk is full, so that such a stream does not tell all it did.
	Torn bool
}

// JournalCreate is a create that the journal saw start.
type JournalCreate struct {
	Address   string
	ID        string // the provider's id, once completed and where it has one
	Completed bool
	Errored   bool // the provider reported its failure
}

// Diagnostic is one error that OpenTofu reported.
type Diagnostic struct {
	Summary string
	Detail  string
	Address string // of the resource, or empty
	File    string // of the configuration, or empty
	Line    int
}

// String returns the diagnostic as one line.
func (d Diagnostic) String() string {
	var b strings.Builder
	if d.File != "" {
		fmt.Fprintf(&b, "%s:%d: ", d.File, d.Line)
	}
	b.WriteString(d.Summary)
	if d.Address != "" {
		b.WriteString(" (" + d.Address + ")")
	}
	if d.Detail != "" {
		b.WriteString(": " + plainText(d.Detail))
	}
	return b.String()
}

// message is one line of the stream; only what is read here.
type message struct {
	Type    string `json:"type"`
	Message string `json:"@message"`
	Hook    struct {
		Resource struct {
			Addr string `json:"addr"`
		} `json:"resource"`
		Action  string `json:"action"`
		IDKey   string `json:"id_key"`
		IDValue string `json:"id_value"`
	} `json:"hook"`
	Diagnostic struct {
		Severity string `json:"severity"`
		Summary  string `json:"summary"`
		Detail   string `json:"detail"`
		Address  string `json:"address"`
		Range    *struct {
			Filename string `json:"filename"`
			Start    struct {
				Line int `json:"line"`
			} `json:"start"`
		} `json:"range"`
	} `json:"diagnostic"`
}

// maxMessage bounds one line of a journal; longer ones are passed over.
const maxMessage = 4 << 20

// ReadJournal reads a stream to its end. Lines that are no JSON object, such
// as what a crashing provider prints, are passed over.
func ReadJournal(r io.Reader) (Journal, error) {
	var j Journal
	versioned := false
	torn, err := eachMessage(r, func(m message) {
		versioned = versioned || m.Type == "version"
		j.add(m)
	})
	j.Torn = torn || !versioned
	if err != nil {
		return j, fmt.Errorf("read journal: %w", err)
	}
	return j, nil
}

// eachMessage calls f with each message, and reports whether a line is cut.
func eachMessage(r io.Reader, f func(message)) (torn bool, err error) {
	br := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	long := false
	for {
		part, err := br.ReadSlice('\n')
		if len(line)+len(part) > maxMessage {
			long = true
		} else {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		var m message
		switch {
		case long:
		case json.Unmarshal(line, &m) == nil:
			f(m)
		case bytes.HasPrefix(line, []byte("{")) && !json.Valid(line):
			torn = true
		}
		torn = torn || err == io.EOF && len(part) > 0
		line, long = line[:0], false
		if err == io.EOF {
			return torn, nil
		}
		if err != nil {
			return torn, err
		}
	}
}

func (j *Journal) add(m message) {
	switch m.Type {
	case "apply_start":
		if m.Hook.Action == actionCreate {
			j.Creates = append(j.Creates, JournalCreate{Address: m.Hook.Resource.Addr})
		}
	case "apply_complete":
		if c := j.started(m); c != nil {
			c.Completed = true
			if m.Hook.IDKey == "id" {
				c.ID = m.Hook.IDValue
			}
		}
	case "apply_errored":
		if c := j.started(m); c != nil {
			c.Errored = true
		}
	case "change_summary":
		j.Summary = m.Message
	case "diagnostic":
		if m.Diagnostic.Severity != "error" {
			return
		}
		d := Diagnostic{Summary: m.Diagnostic.Summary, Detail: m.Diagnostic.Detail, Address: m.Diagnostic.Address}
		if m.Diagnostic.Range != nil {
			d.File, d.Line = m.Diagnostic.Range.Filename, m.Diagnostic.Range.Start.Line
		}
		j.Diagnostics = append(j.Diagnostics, d)
	}
}

// Progress returns what a line of the stream says is happening to a resource,
// or empty.
func Progress(line []byte) string {
	var m message
	if json.Unmarshal(line, &m) != nil {
		return ""
	}
	switch m.Type {
	case "apply_start", "apply_complete", "apply_progress", "apply_errored", "refresh_start":
		return m.Message
	default:
		return ""
	}
}

// started returns the newest create of the message's address that has not
// ended, or nil.
func (j *Journal) started(m message) *JournalCreate {
	for i := len(j.Creates) - 1; i >= 0; i-- {
		c := &j.Creates[i]
		if c.Address == m.Hook.Resource.Addr && !c.Completed && !c.Errored {
			return c
		}
	}
	return nil
}

// Err returns the first diagnostics as one line, or empty.
func (j Journal) Err() string {
	const most = 3
	var parts []string
	for i, d := range j.Diagnostics {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(j.Diagnostics)-most))
			break
		}
		parts = append(parts, d.String())
	}
	return strings.Join(parts, "; ")
}

// NeedsInit reports whether OpenTofu refused because the module is not
// initialized for its present configuration.
func (j Journal) NeedsInit() bool {
	for _, d := range j.Diagnostics {
		if strings.Contains(d.Summary+d.Detail, "tofu init") {
			return true
		}
	}
	return false
}

// Stale reports whether the saved plan was refused because the state moved.
func (j Journal) Stale() bool {
	for _, d := range j.Diagnostics {
		if strings.Contains(d.Summary, "Saved plan is stale") {
			return true
		}
	}
	return false
}

// Lock is who holds a state lock, as OpenTofu reports it.
type Lock struct{ ID, Who string }

var (
	lockID  = regexp.MustCompile(`(?m)^\s*ID:\s+(\S+)\s*$`)
	lockWho = regexp.MustCompile(`(?m)^\s*Who:\s+(.+?)\s*$`)
)

// Lock returns the holder of the state lock that OpenTofu could not get.
func (j Journal) Lock() (Lock, bool) {
	for _, d := range j.Diagnostics {
		if !strings.Contains(d.Summary, "state lock") {
			continue
		}
		var l Lock
		if m := lockID.FindStringSubmatch(d.Detail); m != nil {
			l.ID = m[1]
		}
		if m := lockWho.FindStringSubmatch(d.Detail); m != nil {
			l.Who = m[1]
		}
		return l, true
	}
	return Lock{}, false
}
