package inventory

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// unsafeKey marks, in Ansible's JSON, a string that is never evaluated.
const unsafeKey = "__ansible_unsafe"

// tagPrefix begins the keys by which Ansible's JSON reader makes something else
// of a map than a map (ansible.parsing.ajson).
const tagPrefix = "__ansible_"

// decoder reads a JSON document that is known to be well formed. It is ours
// because three things must not be lost: duplicate keys, the spelling of
// numbers, and the place of every mistake.
type decoder struct {
	data     []byte
	pos      int
	maxDepth int
	unsafe   bool // read {"__ansible_unsafe": s} back as s
	m        *mistakes
}

// decode reads data, which stands at p. Mistakes are added to m; the value is
// only meaningful if none was.
func decode(data []byte, p *place, depth int, unsafe bool, m *mistakes) value {
	switch {
	case len(data) > MaxSize:
		m.addf(p, "is %d bytes long; an inventory may have %d MiB", len(data), MaxSize>>20)
	case !json.Valid(data):
		m.addf(p, "is not JSON")
	case !utf8.Valid(data):
		m.addf(p, "is not valid UTF-8")
	default:
		d := decoder{data: data, maxDepth: depth, unsafe: unsafe, m: m}
		return d.value(p, 0)
	}
	return value{}
}

func (d *decoder) space() {
	for d.pos < len(d.data) {
		switch d.data[d.pos] {
		case ' ', '\t', '\r', '\n':
			d.pos++
		default:
			return
		}
	}
}

// take steps over c if it comes next, after white space.
func (d *decoder) take(c byte) bool {
	d.space()
	if d.data[d.pos] == c {
		d.pos++
		return true
	}
	return false
}

func (d *decoder) value(p *place, depth int) value {
	d.space()
	if c := d.data[d.pos]; depth > d.maxDepth && (c == '{' || c == '[') {
		d.m.addf(p, "nests deeper than %d levels", d.maxDepth)
		d.skip()
		return value{}
	}
	switch c := d.data[d.pos]; c {
	case '{':
		return d.object(p, depth)
	case '[':
		return d.array(p, depth)
	case '"':
		return value{kind: kindText, text: d.text()}
	case 'n':
		d.pos += len("null")
		return value{}
	case 't':
		d.pos += len("true")
		return value{kind: kindBool, text: "true"}
	case 'f':
		d.pos += len("false")
		return value{kind: kindBool, text: "false"}
	default:
		return d.number(p)
	}
}

// skip steps over a map or a list without looking into it.
func (d *decoder) skip() {
	for open := 0; ; {
		switch d.data[d.pos] {
		case '{', '[':
			open++
		case '}', ']':
			open--
		case '"':
			d.text()
			continue
		}
		if d.pos++; open == 0 {
			return
		}
	}
}

func (d *decoder) number(p *place) value {
	start := d.pos
	for d.pos < len(d.data) && strings.IndexByte("+-.0123456789eE", d.data[d.pos]) >= 0 {
		d.pos++
	}
	s := string(d.data[start:d.pos])
	if _, err := strconv.ParseFloat(s, 64); err != nil {
		d.m.addf(p, "is a number out of range")
	}
	return value{kind: kindNumber, text: s}
}

// text reads a string; the common one, without escapes, is only copied.
func (d *decoder) text() string {
	start := d.pos
	escaped := false
	for d.pos++; d.data[d.pos] != '"'; d.pos++ {
		if d.data[d.pos] == '\\' {
			escaped = true
			d.pos++
		}
	}
	d.pos++
	raw := d.data[start:d.pos]
	if !escaped {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	_ = json.Unmarshal(raw, &s) // cannot fail: the document is valid
	return s
}

func (d *decoder) array(p *place, depth int) value {
	v := value{kind: kindList}
	d.pos++
	if d.take(']') {
		return v
	}
	for i := 0; ; i++ {
		v.list = append(v.list, d.value(p.element(i), depth+1))
		if !d.take(',') {
			break
		}
	}
	d.take(']')
	return v
}

func (d *decoder) object(p *place, depth int) value {
	v := value{kind: kindMap}
	d.pos++
	if d.take('}') {
		return v
	}
	sorted := true
	for {
		d.space()
		key := d.text()
		d.take(':')
		at := p.child(key)
		d.key(key, at)
		if n := len(v.maps); n > 0 && v.maps[n-1].key >= key {
			sorted = false
		}
		v.maps = append(v.maps, member{key, d.value(at, depth+1)})
		if !d.take(',') {
			break
		}
	}
	d.take('}')
	if !sorted {
		slices.SortStableFunc(v.maps, func(a, b member) int { return strings.Compare(a.key, b.key) })
		for i := 1; i < len(v.maps); i++ {
			if v.maps[i].key == v.maps[i-1].key {
				d.m.addf(p.child(v.maps[i].key), "stands twice")
			}
		}
	}
	if marked, ok := v.maps.get(unsafeKey); ok && d.unsafe {
		if len(v.maps) > 1 || marked.kind != kindText {
			d.m.addf(p.child(unsafeKey), "marks something else than one string")
		}
		return marked
	}
	return v
}

// key refuses a key that Ansible would not take for a plain name.
func (d *decoder) key(key string, at *place) {
	switch {
	case d.unsafe && key == unsafeKey:
	case strings.HasPrefix(key, tagPrefix):
		d.m.addf(at, "keys that begin with %s have a meaning to Ansible's reader: strings are data without a mark", tagPrefix)
	case IsTemplate(key):
		d.m.addf(at, "a key may not hold template markers")
	}
}
