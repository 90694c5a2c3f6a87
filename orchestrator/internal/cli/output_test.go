package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/exocomp/exocomp/orchestrator"
)

// TestEveryCodeHasAnExitCode in both directions: none is missing, none is left
// over.
func TestEveryCodeHasAnExitCode(t *testing.T) {
	for _, code := range orchestrator.Codes {
		want, ok := exitCodes[code]
		if !ok {
			t.Errorf("%s has no exit code", code)
			continue
		}
		if got := exitCode(fmt.Errorf("wrapped: %w", orchestrator.Errorf(code, "x"))); got != want || got == exitDone {
			t.Errorf("exit code of %s is %d, want %d", code, got, want)
		}
		if got := workCode(&orchestrator.Failure{Code: code}); got != exitFailed && got != exitRefused {
			t.Errorf("work that ended with %s gives exit code %d", code, got)
		}
	}
	if len(exitCodes) != len(orchestrator.Codes) {
		t.Errorf("%d exit codes for %d codes", len(exitCodes), len(orchestrator.Codes))
	}
	for err, want := range map[error]int{
		errors.New("plain"):    exitFailed,
		context.Canceled:       exitInterrupted,
		orchestrator.ErrFailed: exitFailed,
	} {
		if got := exitCode(err); got != want {
			t.Errorf("exit code of %v is %d, want %d", err, got, want)
		}
	}
	if workCode(nil) != exitDone {
		t.Error("work without a failure is not done")
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain é 日本 🙂\ttab":         "plain é 日本 🙂\ttab",
		"\x1b]0;title\x07\x1b[2J":   "?]0;title??[2J",
		"\u009b31m":                 "?31m",
		"line\r\nfeed\x7f\x00":      "line??feed??",
		"\u202eright to left\u2066": "?right to left?",
		"not utf-8: \xff\x9b":       "not utf-8: \ufffd\ufffd",
	} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestPrintableWriterDoesNotCareHowItIsFed: however a text is cut into writes,
// what comes out is that of the whole.
func TestPrintableWriterDoesNotCareHowItIsFed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.SliceOf(rapid.Byte()),
			rapid.Map(rapid.String(), func(s string) []byte { return []byte(s) }),
		).Draw(t, "text")
		var lines []string
		for _, l := range strings.Split(string(text), "\n") {
			lines = append(lines, printable(l))
		}
		var got bytes.Buffer
		w := &printableWriter{w: &got}
		for rest := text; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			if wrote, err := w.Write(rest[:n]); err != nil || wrote != n {
				t.Fatalf("wrote %d: %v", wrote, err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if want := strings.Join(lines, "\n"); got.String() != want {
			t.Fatalf("got %q, want %q", got.String(), want)
		}
	})
}

func TestProgressLines(t *testing.T) {
	at := time.Now()
	events := []orchestrator.Event{
		{Kind: orchestrator.EventRunSubmitted, Run: "r", Message: "run submitted"},
		{Kind: orchestrator.EventStepReleased, Run: "r", Message: "released"},
		{Kind: orchestrator.EventJobQueued, Run: "r", Message: "queued"},
		{Kind: orchestrator.EventStepStarted, Run: "r", Step: orchestrator.StepAnsiblePlay, Message: "step 4 started"},
		{Kind: orchestrator.EventJobStarted, Run: "r", Job: "j", Message: "job started"},
		{Kind: orchestrator.EventJobPhase, Run: "r", Message: "phase play"},
		{Kind: orchestrator.EventJobProgress, Run: "r", Host: "web1", Message: "task: Greet " + hostile},
		{Kind: orchestrator.EventPinChanged, Run: "r", Host: "web1", Warning: true, Message: "the key of web1 changed"},
		{Kind: orchestrator.EventJobFinished, Run: "r", Message: "job succeeded"},
		{Kind: orchestrator.EventStepFinished, Run: "r", Message: "step 4 succeeded"},
		{Kind: orchestrator.EventStepFinished, Run: "r", State: "succeeded", Message: "step 1 succeeded: 1 create"},
		{Kind: orchestrator.EventStepFinished, Run: "r", State: "failed", Message: "step 2 ssh-wait failed: web1: a long story"},
		{Kind: orchestrator.EventRunFinished, Run: "r", State: "failed", Message: "run failed at step 2 ssh-wait: web1: a long story"},
		{Kind: orchestrator.EventRunFinished, Run: "r", Message: "run succeeded"},
		{Kind: orchestrator.EventJobStarted, Job: "j", Message: "standalone started"},
	}
	want := []string{
		"run submitted", "step 4 started", "web1: task: Greet ?[31mred?",
		"warning: the key of web1 changed", "step 4 succeeded", "step 1 succeeded: 1 create",
		"step 2 ssh-wait failed", "run failed at step 2 ssh-wait", "run succeeded", "standalone started",
	}
	var out bytes.Buffer
	p := (&app{Stdio: Stdio{Err: &out}}).newProgress()
	for _, e := range events {
		e.At = at
		p.event(e)
	}
	p.close()
	p.close()
	var got []string
	for line := range strings.Lines(out.String()) {
		_, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		got = append(got, text)
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("progress is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
