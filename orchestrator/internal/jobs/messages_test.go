package jobs

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

func TestMessagesBecomeWhatTheySay(t *testing.T) {
	in := `{"@level":"info","@message":"t.a: Creating...","type":"apply_start"}` + "\n" +
		`plain text` + "\n" +
		`{"@level":"error","@message":"Error: Bad","diagnostic":{"detail":"first\nsecond\n","range":{"filename":"main.tf","start":{"line":3}}}}` + "\n" +
		`{"no":"message"}` + "\n" +
		`{"@message":"cut`
	want := "t.a: Creating...\nplain text\nError: Bad\n  at main.tf:3\n  first\n  second\n{\"no\":\"message\"}\n{\"@message\":\"cut"
	var out bytes.Buffer
	m := &messageWriter{w: &out}
	if _, err := io.Copy(struct{ io.Writer }{m}, iotest.OneByteReader(strings.NewReader(in))); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestMessagesPassALongLine(t *testing.T) {
	long := `{"@message":"` + strings.Repeat("x", 2*maxMessageLine) + `"}` + "\nnext\n"
	var out bytes.Buffer
	m := &messageWriter{w: &out}
	for chunk := []byte(long); len(chunk) > 0; {
		n := min(len(chunk), 64<<10)
		if _, err := m.Write(chunk[:n]); err != nil {
			t.Fatal(err)
		}
		chunk = chunk[n:]
	}
	if out.String() != long {
		t.Errorf("a line of %d bytes came out with %d", len(long), out.Len())
	}
}

// Whatever is no message passes byte for byte, however it is cut into writes.
func TestMessagesLoseNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chunks := rapid.SliceOf(rapid.StringMatching(`[a-z{}"\n]{0,8}`)).Draw(t, "chunks")
		var out bytes.Buffer
		m := &messageWriter{w: &out}
		for _, c := range chunks {
			if _, err := m.Write([]byte(c)); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if got, want := out.String(), strings.Join(chunks, ""); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}
