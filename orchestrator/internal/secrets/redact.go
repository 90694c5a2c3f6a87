package secrets

import (
	"io"

	"github.com/exocomp/exocomp/orchestrator"
)

// MinRedacted is the length in bytes from which a value is taken out of
// output: shorter ones stand in too much innocent text.
const MinRedacted = 8

// redactedMark stands for each secret in redacted output.
const redactedMark = "[redacted]"

// Redactor takes secret values out of streams, in the forms in which tools
// print them: as they are; as JSON strings (Go's, and Python's with and without
// ensure_ascii), also nested once; in base64, standard and URL, at each of the
// three alignments that a value can have inside a longer text; and for a value
// of several lines, each line by itself. It is safe for concurrent use.
//
// What it does not see: a value cut or wrapped in the middle (`base64` wraps at
// 76 columns), compressed or encrypted, or the up to six bits that a base64
// character at a value's edge shares with its neighbour.
type Redactor struct{ auto *automaton }

// NewRedactor returns a redactor of the values that are not shorter than
// [MinRedacted].
func NewRedactor(values []orchestrator.Secret) *Redactor {
	var patterns []string
	for _, v := range values {
		if value := v.Reveal(); len(value) >= MinRedacted {
			patterns = append(patterns, forms(value)...)
		}
	}
	return &Redactor{newAutomaton(patterns)}
}

// Writer returns a writer that passes to w what is written to it, with each
// stretch of secrets replaced by `[redacted]`, wherever the chunks are cut.
//
// It holds back only bytes at the end that may begin a secret; the next write
// decides, or Close, which passes them on and leaves w open. An error of w is
// returned by every later call. It is not safe for concurrent use.
func (r *Redactor) Writer(w io.Writer) io.WriteCloser {
	return &redactWriter{auto: r.auto, w: w}
}

type redactWriter struct {
	auto  *automaton
	w     io.Writer
	err   error
	state int32

	held    []byte // the undecided end of the stream
	covered []span // parts of held that are secret, ascending, apart
	inside  bool   // the last byte that was passed on belongs to a secret
	out     []byte // reused
}

// span is a range of held: [from, to).
type span struct{ from, to int }

// Write takes all of p unless w failed.
func (r *redactWriter) Write(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	for _, c := range p {
		r.held = append(r.held, c)
		r.state = r.auto.next(r.state, c)
		if n := r.auto.longest(r.state); n > 0 {
			r.cover(len(r.held)-n, len(r.held))
		}
	}
	if err := r.pass(len(r.held) - r.auto.pending(r.state)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close passes on what was held back. Writing after it begins a new stream.
func (r *redactWriter) Close() error {
	if r.err != nil {
		return r.err
	}
	r.state = 0
	err := r.pass(len(r.held))
	r.inside = false
	return err
}

// cover marks a match. Matches come in the order of their ends, and those that
// overlap or touch are one.
func (r *redactWriter) cover(from, to int) {
	for n := len(r.covered); n > 0 && r.covered[n-1].to >= from; n-- {
		from = min(from, r.covered[n-1].from)
		r.covered = r.covered[:n-1]
	}
	r.covered = append(r.covered, span{from, to})
}

// pass writes the first n held bytes with their secrets replaced.
func (r *redactWriter) pass(n int) error {
	r.out = r.out[:0]
	at := 0
	for len(r.covered) > 0 && at < n && r.covered[0].from < n {
		s := r.covered[0]
		if s.from > at {
			r.out = append(r.out, r.held[at:s.from]...)
			r.inside = false
		}
		if !r.inside {
			r.out = append(r.out, redactedMark...)
			r.inside = true
		}
		at = min(s.to, n)
		if s.to > n {
			break
		}
		r.covered = r.covered[1:]
	}
	if at < n {
		r.out = append(r.out, r.held[at:n]...)
		r.inside = false
	}
	r.held = append(r.held[:0], r.held[n:]...)
	for i := range r.covered {
		r.covered[i].from = max(0, r.covered[i].from-n)
		r.covered[i].to -= n
	}
	if len(r.out) == 0 {
		return nil
	}
	_, r.err = r.w.Write(r.out)
	return r.err
}
