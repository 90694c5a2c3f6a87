package secrets

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/exocomp/exocomp/orchestrator"
)

func secretsOf(values ...string) []orchestrator.Secret {
	var s []orchestrator.Secret
	for _, v := range values {
		s = append(s, orchestrator.NewSecret(v))
	}
	return s
}

// redact passes text through r in chunks that end at the given places.
func redact(t interface{ Fatal(...any) }, r *Redactor, text string, cuts ...int) string {
	var b bytes.Buffer
	w := r.Writer(&b)
	at := 0
	for _, cut := range append(cuts, len(text)) {
		if n, err := w.Write([]byte(text[at:cut])); err != nil || n != cut-at {
			t.Fatal("write:", n, err)
		}
		at = cut
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRedactorFindsEveryForm(t *testing.T) {
	const value = "p<ss\"w\\rd/ü€🔑&\tend"
	plain, _ := json.Marshal(value)
	nested, _ := json.Marshal(string(plain))
	for name, text := range map[string]string{
		"raw":                value,
		"json":               string(plain),
		"json nested":        string(nested),
		"python json":        `"p<ss\"w\\rd/\u00fc\u20ac\ud83d\udd11&\tend"`,
		"python json, utf-8": `"p<ss\"w\\rd/ü€🔑&\tend"`,
		"twice":              value + value,
	} {
		t.Run(name, func(t *testing.T) {
			got := redact(t, NewRedactor(secretsOf(value)), "<"+text+">")
			if strings.Contains(got, "rd") || strings.Count(got, "[redacted]") != 1 {
				t.Errorf("%s → %s", text, got)
			}
		})
	}
}

func TestRedactorFindsBase64AtEveryAlignment(t *testing.T) {
	const value = "s3cr3t>>value??~~"
	r := NewRedactor(secretsOf(value))
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		for before := range 6 {
			for after := range 3 {
				text := enc.EncodeToString([]byte("user:x"[:before] + value + "zz"[:after]))
				got := redact(t, r, text)
				if !strings.Contains(got, "[redacted]") {
					t.Errorf("%d before, %d after: %s passed", before, after, text)
				}
				// At most the two edge characters and what stands around them remain.
				if left := len(got) - len("[redacted]"); left > (before+after)*4/3+2+3 {
					t.Errorf("%d before, %d after: %s leaves %d characters", before, after, got, left)
				}
			}
		}
	}
}

func TestRedactorTakesLinesOfAValueButNotPEMArmor(t *testing.T) {
	pem := "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\nabc\nc2Vjb25kIGxpbmU=\n-----END OPENSSH PRIVATE KEY-----\n"
	r := NewRedactor(secretsOf(pem))
	for text, want := range map[string]string{
		"key: " + pem + "!":                   "key: [redacted]!",
		"  b3BlbnNzaC1rZXk\r":                 "  [redacted]\r",
		"c2Vjb25kIGxpbmU=":                    "[redacted]",
		"abc":                                 "abc",
		"-----BEGIN OPENSSH PRIVATE KEY-----": "-----BEGIN OPENSSH PRIVATE KEY-----",
		strings.ReplaceAll(pem, "\n", `\n`):   "[redacted]",
	} {
		if got := redact(t, r, text); got != want {
			t.Errorf("%q → %q, want %q", text, got, want)
		}
	}
}

func TestRedactorPassesOverShortValues(t *testing.T) {
	r := NewRedactor(secretsOf("1234567", "12345678", "", "x"))
	if got, want := redact(t, r, "1234567 12345678 x"), "1234567 [redacted] x"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRedactorHoldsBackOnlyWhatMayBeginASecret(t *testing.T) {
	var b bytes.Buffer
	w := NewRedactor(secretsOf("topsecret")).Writer(&b)
	for _, step := range []struct{ write, want string }{
		{"a line\n", "a line\n"},
		{"x to", "a line\nx "},
		{"pse", "a line\nx "},
		{"p\n", "a line\nx topsep\n"},
		{"topsecret", "a line\nx topsep\n[redacted]"},
		{"topsec", "a line\nx topsep\n[redacted]"},
		{"ret", "a line\nx topsep\n[redacted]"}, // touching stretches are one
		{"\nt", "a line\nx topsep\n[redacted]\n"},
	} {
		if _, err := w.Write([]byte(step.write)); err != nil {
			t.Fatal(err)
		}
		if b.String() != step.want {
			t.Fatalf("after %q: %q, want %q", step.write, b.String(), step.want)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(b.String(), "\nt") {
		t.Errorf("Close lost the held byte: %q", b.String())
	}
}

func TestRedactorKeepsTheWritersError(t *testing.T) {
	full := errors.New("disk full")
	w := NewRedactor(nil).Writer(errWriter{full})
	for range 2 {
		if _, err := w.Write([]byte("x")); !errors.Is(err, full) {
			t.Errorf("Write error = %v, want %v", err, full)
		}
	}
	if err := w.Close(); !errors.Is(err, full) {
		t.Errorf("Close error = %v, want %v", err, full)
	}
}

type errWriter struct{ err error }

func (w errWriter) Write([]byte) (int, error) { return 0, w.err }

// naive is the oracle: it marks each occurrence of each pattern and replaces
// each stretch of marked bytes.
func naive(patterns []string, text string) string {
	marked := make([]bool, len(text)+1)
	for _, p := range patterns {
		for i := range len(text) {
			if strings.HasPrefix(text[i:], p) {
				for j := range len(p) {
					marked[i+j] = true
				}
			}
		}
	}
	var b strings.Builder
	for i := range len(text) {
		switch {
		case !marked[i]:
			b.WriteByte(text[i])
		case i == 0 || !marked[i-1]:
			b.WriteString(redactedMark)
		}
	}
	return b.String()
}

func TestRedactorAgreesWithTheOracle(t *testing.T) {
	// A small alphabet makes overlaps, prefixes of prefixes and near misses.
	word := rapid.StringOfN(rapid.SampledFrom([]rune("ab\n\"=")), 0, 14, -1)
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(word, 0, 4).Draw(t, "values")
		var patterns []string
		for _, v := range values {
			if len(v) >= MinRedacted {
				patterns = append(patterns, forms(v)...)
			}
		}
		pieces := []*rapid.Generator[string]{word}
		if len(patterns) > 0 {
			pieces = append(pieces, rapid.SampledFrom(patterns))
		}
		text := strings.Join(rapid.SliceOfN(rapid.OneOf(pieces...), 0, 12).Draw(t, "text"), "")
		cuts := rapid.SliceOfN(rapid.IntRange(0, len(text)), 0, 8).Draw(t, "cuts")
		slices.Sort(cuts)
		got := redact(t, NewRedactor(secretsOf(values...)), text, cuts...)
		if want := naive(patterns, text); got != want {
			t.Fatalf("values %q\ntext %q\ngot  %q\nwant %q", values, text, got, want)
		}
	})
}

func FuzzRedactor(f *testing.F) {
	f.Add("topsecret", "secretkey", "a topsecretkey and \"topsecret\"", uint8(3))
	f.Add("aaaaaaaa", "aaaaaaaaa", "aaaaaaaaaaaaaaaaaaaaaaaaaaa\n", uint8(1))
	f.Add("line one\nline two\n", "two\nline three", "line one\nline two\nline three", uint8(5))
	f.Fuzz(func(t *testing.T, one, two, text string, chunk uint8) {
		var patterns []string
		for _, v := range []string{one, two} {
			if len(v) >= MinRedacted {
				patterns = append(patterns, forms(v)...)
			}
		}
		var b bytes.Buffer
		w := NewRedactor(secretsOf(one, two)).Writer(&b)
		for chunk := range slices.Chunk([]byte(text), int(chunk)+1) {
			if _, err := w.Write(chunk); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got, want := b.String(), naive(patterns, text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func BenchmarkRedactor(b *testing.B) {
	key, _ := json.Marshal(strings.Repeat("0123456789abcdef", 200))
	r := NewRedactor(secretsOf(string(key), "hunter2hunter2", "another-token-1234567890"))
	line := []byte("TASK [install package] ************ ok: [web1.example.org] changed=1\n")
	w := r.Writer(&bytes.Buffer{})
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if _, err := w.Write(line); err != nil {
			b.Fatal(err)
		}
	}
}
