package sshwait

import (
	"bytes"
	"io"
)

// Bounds on what a server may send up to its banner. RFC 4253 §4.2 allows the
// banner 255 bytes with its line end, and any number of other lines before it.
const (
	maxLine     = 255
	maxPreamble = 8 << 10
)

// readBanner reads up to the line that begins with `SSH-`; lines before it are
// passed over. It returns nil when that line is complete.
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
				return nil
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
