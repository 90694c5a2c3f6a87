package secrets

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
)

// forms returns the texts under which value may appear, none shorter than
// [MinRedacted] bytes: every encoding is at least as long as what it encodes.
func forms(value string) []string {
	parts := []string{value}
	if strings.ContainsAny(value, "\r\n") {
		for _, line := range strings.FieldsFunc(value, func(r rune) bool { return r == '\n' || r == '\r' }) {
			line = strings.TrimSpace(line)
			if len(line) >= MinRedacted && !pemArmor(line) {
				parts = append(parts, line)
			}
		}
	}
	var all []string
	for _, part := range parts {
		all = append(all, part)
		for _, once := range jsonForms(part) {
			all = append(all, once)
			all = append(all, jsonForms(once)...)
		}
		all = append(all, base64Forms(part)...)
	}
	return all
}

// pemArmor reports whether line is one of the two that are the same in every
// PEM file (RFC 7468): taking them out would only make logs hard to read.
func pemArmor(line string) bool {
	return strings.HasPrefix(line, "-----BEGIN ") || strings.HasPrefix(line, "-----END ")
}

// jsonForms returns s as the inside of a JSON string, as encoders differ, those
// left out that are s itself.
func jsonForms(s string) []string {
	var all []string
	for _, form := range []string{goJSON(s, true), goJSON(s, false), asciiJSON(s)} {
		if form != s {
			all = append(all, form)
		}
	}
	return all
}

// goJSON is encoding/json's form, with or without its escaping for HTML.
func goJSON(s string, html bool) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	if err := enc.Encode(s); err != nil {
		return s // a string always encodes
	}
	return strings.TrimSuffix(strings.TrimPrefix(b.String(), `"`), "\"\n")
}

// asciiJSON is the form of Python's json.dumps with ensure_ascii.
func asciiJSON(s string) string {
	var b strings.Builder
	for _, r := range goJSON(s, false) {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// base64Forms returns the characters that value decides by itself (RFC 4648),
// for both alphabets, where 0, 1 or 2 bytes of a group of three stand before it.
func base64Forms(value string) []string {
	var all []string
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			text := enc.EncodeToString([]byte("\x00\x00"[:before] + value))
			first := (8*before + 5) / 6           // the characters before it share bits
			last := 8 * (before + len(value)) / 6 // so does an incomplete one at the end
			all = append(all, text[first:last])
		}
	}
	return all
}
