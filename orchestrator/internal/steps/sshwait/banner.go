package sshwait

import (
	"bytes"
	"fmt"
	"io"
)

// Bounds on what a server may send up to its banner. RFC 4253 §4.2 allows the
// banner 255 bytes with its line end, and any number of other lines before it.
const (
	maxLine     = 255
	maxPreamble = 8 << 10
)

// readBanner reads up to the line that begins with `SSH-`; lines before it are
// passed over. It returns nil when that line is complete and of a protocol that
// ssh speaks.
func readBanner(r io.Reader) error {
	var line []byte // the incomplete last line
	chunk := make([]byte, 512)
	for total := 0; ; {
		n, err := r.Read(chunk)
		total += n
		line = append(line, chunk[:n]...)
		for {
			end := bytes.IndexByte(line, '\n')
			if end >= maxLine || (end < 0 && len(line) >= maxLine) {
				return plain("banner: a line is longer than 255 bytes", nil)
			}
			if end < 0 {
				break
			}
			if bytes.HasPrefix(line, []byte("SSH-")) {
				return speaks(line[:end])
			}
			line = line[end+1:]
		}
		if total >= maxPreamble {
			return plain("banner: 8 KiB came and no line that begins with SSH-", nil)
		}
		if err != nil {
			return bannerError(err, total)
		}
	}
}

// speaks returns nil for the banner of a server that speaks SSH 2: one of version
// 2.0, or 1.99 that takes older clients too (RFC 4253 §5.1).
func speaks(banner []byte) error {
	for _, version := range []string{"SSH-2.0-", "SSH-1.99-"} {
		if bytes.HasPrefix(banner, []byte(version)) {
			return nil
		}
	}
	return plain(fmt.Sprintf("banner: %.40q is no server of SSH 2.0", bytes.TrimRight(banner, "\r")), nil)
}
