package sshwait

import (
	"strings"
	"testing"
	"testing/iotest"
)

func TestReadBanner(t *testing.T) {
	line := func(n int) string { return "SSH-2.0-" + strings.Repeat("x", n-len("SSH-2.0-")-2) + "\r\n" }
	for name, tc := range map[string]struct{ sends, want string }{
		"openssh":           {"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", ""},
		"newline alone":     {"SSH-2.0-dropbear\n", ""},
		"old protocol":      {"SSH-1.99-Cisco-1.25\n", ""},
		"too old":           {"SSH-1.5-OpenSSH_1.2\r\n", `banner: "SSH-1.5-OpenSSH_1.2" is no server of SSH 2.0`},
		"too new":           {"SSH-3.0-x\n", `banner: "SSH-3.0-x" is no server of SSH 2.0`},
		"not a version":     {"SSH-20-x\r\n", `banner: "SSH-20-x" is no server of SSH 2.0`},
		"more follows":      {"SSH-2.0-x\r\n\x00\x00\x01\x02binary", ""},
		"text before":       {"Welcome to the bastion\r\n\r\nAuthorized use only\r\nSSH-2.0-x\r\n", ""},
		"longest":           {line(255), ""},
		"one byte too long": {line(256), "banner: a line is longer than 255 bytes"},
		"300 bytes":         {line(300), "banner: a line is longer than 255 bytes"},
		"endless line":      {strings.Repeat("x", 9000), "banner: a line is longer than 255 bytes"},
		"endless text":      {strings.Repeat("no ssh here\n", 1000), "banner: 8 KiB came and no line that begins with SSH-"},
		"in the middle":     {"say SSH-2.0-x\r\n", "banner: the peer closed the connection without one"},
		"incomplete":        {"SSH-2.0-x", "banner: the peer closed the connection without one"},
		"nothing":           {"", "banner: the peer closed the connection at once"},
		"http":              {"HTTP/1.1 400 Bad Request\r\n\r\n", "banner: the peer closed the connection without one"},
	} {
		t.Run(name, func(t *testing.T) {
			for how, r := range map[string]func() error{
				"at once":      func() error { return readBanner(strings.NewReader(tc.sends)) },
				"byte by byte": func() error { return readBanner(iotest.OneByteReader(strings.NewReader(tc.sends))) },
				"with the end": func() error { return readBanner(iotest.DataErrReader(strings.NewReader(tc.sends))) },
			} {
				got := ""
				if err := r(); err != nil {
					got = err.Error()
				}
				if got != tc.want {
					t.Errorf("%s: %q, want %q", how, got, tc.want)
				}
			}
		})
	}
}

func FuzzReadBanner(f *testing.F) {
	f.Add("hello\nSSH-2.0-x\r\n")
	f.Add(strings.Repeat("x", 300) + "\n")
	f.Fuzz(func(t *testing.T, s string) {
		whole := readBanner(strings.NewReader(s))
		bytewise := readBanner(iotest.OneByteReader(strings.NewReader(s)))
		if len(s) < maxPreamble && (whole == nil) != (bytewise == nil) {
			t.Errorf("at once %v, byte by byte %v", whole, bytewise)
		}
		if whole == nil && !strings.HasPrefix(s, "SSH-2.0-") && !strings.Contains(s, "\nSSH-2.0-") &&
			!strings.HasPrefix(s, "SSH-1.99-") && !strings.Contains(s, "\nSSH-1.99-") {
			t.Error("no banner in it, and ready")
		}
	})
}
