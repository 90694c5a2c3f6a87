package inventory

import (
	"fmt"
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

// String writes the place as OpenTofu would: a.b["odd key"][3].
func (p *place) String() string {
	var b strings.Builder
	p.write(&b)
	return b.String()
}

func (p *place) write(b *strings.Builder) {
	if p.up != nil {
		p.up.write(b)
	}
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

// isPlain reports whether s may stand in a place without quotes.
func isPlain(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !isAlnum(c) && c != '_' && c != '-' {
			return false
		}
	}
	return s != ""
}

// quote shows s in a message: printable, and never longer than a line.
func quote(s string) string {
	const limit = 60
	if r := []rune(s); len(r) > limit {
		return strconv.Quote(string(r[:limit])) + "…"
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
