package inventory

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
)

// maxMistakes bounds how many mistakes one error spells out; a wrong template
// in front of ten thousand hosts makes the same one ten thousand times.
const maxMistakes = 25

// place is a position in a document, as a chain of keys up to its root.
type place struct {
	up    *place
	key   string
	index int // in a list, where key is empty
	list  bool
}

func root(name string) *place             { return &place{key: name} }
func (p *place) child(key string) *place  { return &place{up: p, key: key} }
func (p *place) element(index int) *place { return &place{up: p, index: index, list: true} }

// A place is cut in its middle where it is deeper than its ends together.
const (
	placeStart = 6 // levels, the document's name included
	placeEnd   = 3
)

// String writes the place as OpenTofu would: a.b["odd key"][3]. It is never
// longer than a few lines, whatever the document holds.
func (p *place) String() string {
	var levels []*place // from the inside out
	for at := p; at != nil; at = at.up {
		levels = append(levels, at)
	}
	slices.Reverse(levels)
	var b strings.Builder
	for i, level := range levels {
		switch cut := len(levels) - placeStart - placeEnd; {
		case cut <= 1 || i < placeStart || i >= placeStart+cut:
			level.write(&b)
		case i == placeStart:
			fmt.Fprintf(&b, " …%d levels… ", cut)
		}
	}
	return b.String()
}

// write writes one level.
func (p *place) write(b *strings.Builder) {
	switch {
	case p.list:
		fmt.Fprintf(b, "[%d]", p.index)
	case p.up == nil:
		b.WriteString(plainOrQuoted(p.key))
	case isPlain(p.key):
		b.WriteByte('.')
		b.WriteString(p.key)
	default:
		b.WriteByte('[')
		b.WriteString(quote(p.key))
		b.WriteByte(']')
	}
}

func plainOrQuoted(s string) string {
	if isPlain(s) {
		return s
	}
	return quote(s)
}

// maxShown is how many characters of a key or a value a message shows.
const maxShown = 60

// isPlain reports whether s may stand in a place as it is.
func isPlain(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !isAlnum(c) && c != '_' && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= maxShown
}

// quote shows s in a message: printable, and never longer than a line.
func quote(s string) string {
	if r := []rune(s); len(r) > maxShown {
		return strconv.Quote(string(r[:maxShown])) + "…"
	}
	return strconv.Quote(s)
}

// mistakes collects what is wrong with a document, each with its place.
type mistakes struct {
	list  orchestrator.Mistakes
	count int
}

func (m *mistakes) addf(p *place, format string, args ...any) {
	m.count++
	if m.count <= maxMistakes {
		m.list.Addf("%s: %s", p, fmt.Sprintf(format, args...))
	}
}

// err returns nil, or one [orchestrator.CodeInvalid] error with a line a mistake.
func (m *mistakes) err() error {
	if more := m.count - maxMistakes; more > 0 {
		m.list.Addf("and %d more like these", more)
		m.count = 0
	}
	return m.list.Err()
}
