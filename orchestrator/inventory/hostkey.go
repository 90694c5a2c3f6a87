package inventory

import (
	"encoding/base64"
	"encoding/binary"
	"strings"
)

// keyTypes maps the host key types that exocomp can pin to the number of fields
// of their wire form (RFC 4253 §6.6, RFC 5656 §3.1, RFC 8709 §4).
var keyTypes = map[string]int{
	"ssh-ed25519":         2,
	"ecdsa-sha2-nistp256": 3,
	"ecdsa-sha2-nistp384": 3,
	"ecdsa-sha2-nistp521": 3,
	"ssh-rsa":             3,
}

// checkHostKeys takes one OpenSSH public key line, or a list of them.
func checkHostKeys(v value) string {
	const want = "must be an OpenSSH public key line (ssh-ed25519 AAAA…), or a list of them"
	switch {
	case v.kind == kindText:
		_, reason := hostKey(v.text)
		return reason
	case v.kind != kindList || len(v.list) == 0:
		return want
	}
	for _, e := range v.list {
		if e.kind != kindText {
			return want
		}
		if _, reason := hostKey(e.text); reason != "" {
			return reason
		}
	}
	return ""
}

// hostKeysOf returns the keys of a value that passed [checkHostKeys].
func hostKeysOf(v value) []string {
	lines := []value{v}
	if v.kind == kindList {
		lines = v.list
	}
	keys := make([]string, 0, len(lines))
	for _, l := range lines {
		key, _ := hostKey(l.text)
		keys = append(keys, key)
	}
	return keys
}

// hostKey reads a public key line (sshd(8), "AUTHORIZED_KEYS FILE FORMAT",
// without options) and returns it as `type base64`, or what is wrong with it.
func hostKey(line string) (key, reason string) {
	line = strings.TrimSpace(line)
	if strings.ContainsAny(line, "\r\n") {
		return "", "holds several lines: give a list of public keys"
	}
	f := strings.Fields(line)
	if len(f) < 2 {
		return "", "is not a public key line: it must read ssh-ed25519 AAAA…"
	}
	fields, ok := keyTypes[f[0]]
	if !ok {
		return "", "has key type " + quote(f[0]) + ": use an ed25519, ecdsa or rsa host key, without a host name before it"
	}
	blob, err := base64.StdEncoding.DecodeString(f[1])
	if err != nil || !isKeyBlob(blob, f[0], fields) {
		return "", "is a damaged public key: copy the whole line"
	}
	return f[0] + " " + f[1], ""
}

// isKeyBlob reports whether b is a sequence of n length-prefixed fields of
// which the first is the key type.
func isKeyBlob(b []byte, keyType string, n int) bool {
	for i := range n {
		if len(b) < 4 {
			return false
		}
		size := binary.BigEndian.Uint32(b)
		if b = b[4:]; uint64(size) > uint64(len(b)) || size == 0 {
			return false
		}
		if i == 0 && string(b[:size]) != keyType {
			return false
		}
		b = b[size:]
	}
	return len(b) == 0
}
