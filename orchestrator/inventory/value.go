package inventory

import (
	"encoding/json"
	"slices"
	"strings"
)

// kind is the JSON type of a [value].
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindText
	kindList
	kindMap
)

// String names the kind in a message, article included.
func (k kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "a list", "a map"}[k]
}

// value is a JSON value. Numbers keep their spelling, so that none loses a
// digit on its way to Ansible.
type value struct {
	kind kind
	text string // a string's content, a number's or boolean's spelling
	list []value
	maps variables // a map's members, sorted by key
}

type member struct {
	key   string
	value value
}

// variables is a map of names to values, sorted by name.
type variables []member

func (v variables) find(name string) (int, bool) {
	return slices.BinarySearchFunc(v, name, func(m member, name string) int {
		return strings.Compare(m.key, name)
	})
}

// get returns the value of name.
func (v variables) get(name string) (value, bool) {
	if i, ok := v.find(name); ok {
		return v[i].value, true
	}
	return value{}, false
}

// with returns a copy of v in which name has value x.
func (v variables) with(name string, x value) variables {
	i, ok := v.find(name)
	c := slices.Clone(v)
	if ok {
		c[i].value = x
		return c
	}
	return slices.Insert(c, i, member{name, x})
}

// without returns a copy of v that lacks name.
func (v variables) without(name string) variables {
	i, ok := v.find(name)
	if !ok {
		return v
	}
	return slices.Delete(slices.Clone(v), i, i+1)
}

// merge returns the members of v and w; where both have a name, w's value.
func (v variables) merge(w variables) variables {
	if len(v) == 0 {
		return w
	}
	if len(w) == 0 {
		return v
	}
	merged := make(variables, 0, len(v)+len(w))
	for len(v) > 0 && len(w) > 0 {
		switch c := strings.Compare(v[0].key, w[0].key); {
		case c < 0:
			merged, v = append(merged, v[0]), v[1:]
		case c > 0:
			merged, w = append(merged, w[0]), w[1:]
		default:
			merged, v, w = append(merged, w[0]), v[1:], w[1:]
		}
	}
	return append(append(merged, v...), w...)
}

// any returns the value as encoding/json would decode it with UseNumber.
func (v value) any() any {
	switch v.kind {
	case kindBool:
		return v.text == "true"
	case kindNumber:
		return json.Number(v.text)
	case kindText:
		return v.text
	case kindList:
		list := make([]any, len(v.list))
		for i, e := range v.list {
			list[i] = e.any()
		}
		return list
	case kindMap:
		m := make(map[string]any, len(v.maps))
		for _, e := range v.maps {
			m[e.key] = e.value.any()
		}
		return m
	default:
		return nil
	}
}

// IsTemplate reports whether Ansible could take s for something to evaluate:
// Jinja's markers, or the header that declares other ones.
func IsTemplate(s string) bool {
	if strings.HasPrefix(s, "#jinja2:") {
		return true
	}
	for rest := s; ; {
		i := strings.IndexByte(rest, '{')
		if i < 0 || i+1 == len(rest) {
			return false
		}
		switch rest[i+1] {
		case '{', '%', '#':
			return true
		}
		rest = rest[i+1:]
	}
}
