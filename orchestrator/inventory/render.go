package inventory

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sort"

	"github.com/exocomp/exocomp/orchestrator"
)

// Render returns the inventory in Ansible's static JSON form: a `.json` file
// for ansible-inventory's yaml plugin. Equal inventories give equal bytes.
//
// All hosts stand below `all` with their variables, a line each; each group is
// defined where it comes first and named elsewhere. The empty group `tf` makes
// the pattern `tf:<workspace>`, a union to Ansible, mean the workspace. Strings
// that Ansible could evaluate are marked unsafe, which keeps them data.
//
// The error is [orchestrator.CodeInvalid]: the result is over [MaxSize].
func Render(inv *Inventory) ([]byte, error) {
	w := writer{inv: inv, defined: map[string]bool{}}
	w.b.WriteString("{\n  \"all\": {\n    \"hosts\": {")
	for i, name := range inv.HostNames() {
		w.item(i, 6)
		w.text(name)
		w.b.WriteString(": ")
		w.vars(inv.hosts[name].vars)
	}
	w.end(len(inv.hosts), 4)
	if all := inv.groups[groupAll]; len(all.vars) > 0 {
		w.b.WriteString(",\n    \"vars\": ")
		w.vars(all.vars)
	}
	w.b.WriteString(",\n    \"children\": {")
	top := inv.topGroups()
	for i, name := range top {
		w.item(i, 6)
		w.group(name, 6)
	}
	w.end(len(top), 4)
	w.b.WriteString("\n  }\n}\n")
	if n := w.b.Len(); n > MaxSize {
		return nil, orchestrator.Errorf(orchestrator.CodeInvalid,
			"the inventory of workspace %s is %d bytes long; it may have %d MiB", inv.Workspace, n, MaxSize>>20)
	}
	return w.b.Bytes(), nil
}

// topGroups returns the groups right below `all`, sorted; `tf` is one.
func (inv *Inventory) topGroups() []string {
	top := []string{groupTofu}
	for name, g := range inv.groups {
		if name != groupAll && len(g.parents) == 0 {
			top = append(top, name)
		}
	}
	sort.Strings(top)
	return top
}

// Digest returns the digest of a rendered inventory, `sha256:<hex>`.
func Digest(rendered []byte) string {
	sum := sha256.Sum256(rendered)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// writer builds the static form.
type writer struct {
	inv     *Inventory
	b       bytes.Buffer
	defined map[string]bool // groups that stand in the output already
}

// item begins the i-th member of a map on a line of its own.
func (w *writer) item(i, indent int) {
	if i > 0 {
		w.b.WriteByte(',')
	}
	w.line(indent)
}

// end closes a map of n members.
func (w *writer) end(n, indent int) {
	if n > 0 {
		w.line(indent)
	}
	w.b.WriteByte('}')
}

func (w *writer) line(indent int) {
	w.b.WriteByte('\n')
	for range indent {
		w.b.WriteByte(' ')
	}
}

// group writes a group's name and, the first time, its definition.
func (w *writer) group(name string, indent int) {
	w.text(name)
	w.b.WriteString(": {")
	g := w.inv.groups[name]
	if w.defined[name] {
		w.b.WriteByte('}')
		return
	}
	w.defined[name] = true
	if g == nil { // tf, which is no group of the inventory's
		w.b.WriteString("\"hosts\": {}}")
		return
	}
	inner := indent + 2
	w.line(inner)
	w.b.WriteString("\"hosts\": {")
	for i, h := range sortedKeys(g.hosts) {
		w.item(i, inner+2)
		w.text(h)
		w.b.WriteString(": {}")
	}
	w.end(len(g.hosts), inner)
	if len(g.vars) > 0 {
		w.b.WriteByte(',')
		w.line(inner)
		w.b.WriteString("\"vars\": ")
		w.vars(g.vars)
	}
	if len(g.children) > 0 {
		w.b.WriteByte(',')
		w.line(inner)
		w.b.WriteString("\"children\": {")
		for i, c := range sortedKeys(g.children) {
			w.item(i, inner+2)
			w.group(c, inner+2)
		}
		w.end(len(g.children), inner)
	}
	w.line(indent)
	w.b.WriteByte('}')
}

// vars writes a map on one line.
func (w *writer) vars(vars variables) {
	w.b.WriteByte('{')
	for i, m := range vars {
		if i > 0 {
			w.b.WriteString(", ")
		}
		w.text(m.key)
		w.b.WriteString(": ")
		w.value(m.value)
	}
	w.b.WriteByte('}')
}

func (w *writer) value(v value) {
	switch v.kind {
	case kindNull:
		w.b.WriteString("null")
	case kindBool, kindNumber:
		w.b.WriteString(v.text)
	case kindText:
		if !IsTemplate(v.text) {
			w.text(v.text)
			return
		}
		w.b.WriteString("{\"" + unsafeKey + "\": ")
		w.text(v.text)
		w.b.WriteByte('}')
	case kindList:
		w.b.WriteByte('[')
		for i, e := range v.list {
			if i > 0 {
				w.b.WriteString(", ")
			}
			w.value(e)
		}
		w.b.WriteByte(']')
	case kindMap:
		w.vars(v.maps)
	}
}

// text writes a JSON string; the common one needs no escapes.
func (w *writer) text(s string) {
	if !slices.ContainsFunc([]byte(s), needsEscape) {
		w.b.WriteByte('"')
		w.b.WriteString(s)
		w.b.WriteByte('"')
		return
	}
	enc := json.NewEncoder(&w.b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string into a buffer: neither fails
	w.b.Truncate(w.b.Len() - 1)
}

func needsEscape(c byte) bool { return c < ' ' || c >= 0x7f || c == '"' || c == '\\' }
