package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// jsonFlag adds --json: a read command then prints what it shows as JSON, one
// that submits or changes prints what it submitted or changed, as it was last
// seen. People are told on standard error all the same.
func jsonFlag(c *cobra.Command) *bool {
	return c.Flags().Bool("json", false, "print JSON")
}

// limit is a flag that says how many, 0 for all.
type limit int

func (l *limit) String() string { return strconv.Itoa(int(*l)) }
func (l *limit) Type() string   { return "int" }

func (l *limit) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil {
		return errors.New("it is not a number")
	}
	if n < 0 {
		return errors.New("it is negative")
	}
	*l = limit(n)
	return nil
}

// limitFlag adds --limit to a list.
func limitFlag(c *cobra.Command, to *int, byDefault int, usage string) {
	*to = byDefault
	c.Flags().Var((*limit)(to), "limit", usage)
}

// printJSON prints v as indented JSON on standard output.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.Out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// list returns an empty list for nil, so that JSON prints [] and not null.
func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

// table prints rows in aligned columns; an empty one prints nothing but, to
// people, what there is not.
func (a *app) table(head []string, rows [][]string, none string) error {
	if len(rows) == 0 {
		a.say("%s", none)
		return nil
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{head}, rows...) {
		if _, err := fmt.Fprintln(w, printable(strings.Join(row, "\t"))); err != nil {
			return err
		}
	}
	return w.Flush()
}

// orDash stands for an empty column.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// instant prints a time for people, in the local zone.
func instant(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// span prints how long something took, or takes since it began.
func span(from, to time.Time) string {
	if from.IsZero() {
		return "-"
	}
	if to.IsZero() {
		to = time.Now()
	}
	return duration(to.Sub(from))
}

func duration(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	default:
		return d.Round(time.Second).String()
	}
}

// printable replaces what is not text (control characters, and invisible ones
// such as those that turn the direction of writing), so that no log line or host
// name does more to somebody's terminal than stand there.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && !unicode.IsGraphic(r) {
			return '?'
		}
		return r
	}, s)
}

// printableWriter passes text on as [printable] makes it, line ends excepted. A
// rune that two writes divide is put together again; Close passes on half a one
// that stands at the end.
type printableWriter struct {
	w    io.Writer
	half []byte
}

func (p *printableWriter) Write(b []byte) (int, error) {
	text := append(p.half, b...)
	whole := len(text)
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if last := text[len(text)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				whole -= i
			}
			break
		}
	}
	p.half = slices.Clone(text[whole:])
	return len(b), p.pass(text[:whole])
}

func (p *printableWriter) Close() error { return p.pass(p.half) }

func (p *printableWriter) pass(text []byte) error {
	lines := strings.Split(string(text), "\n")
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	_, err := io.WriteString(p.w, strings.Join(lines, "\n"))
	return err
}

// indent prints each line of text behind prefix.
func indent(w io.Writer, prefix, text string) {
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		_, _ = fmt.Fprintln(w, prefix+printable(line))
	}
}

// printLine prints v as one line of JSON, for streams.
func (a *app) printLine(v any) error {
	e := json.NewEncoder(a.Out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
