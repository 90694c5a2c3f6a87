package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// jsonFlag adds --json to a read command.
func jsonFlag(c *cobra.Command) *bool {
	return c.Flags().Bool("json", false, "print JSON")
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
		if _, err := fmt.Fprintln(w, strings.Join(row, "\t")); err != nil {
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

// printable replaces control characters, so that no log line or host name moves
// the cursor of somebody's terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
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
