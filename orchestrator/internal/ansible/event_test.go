package ansible

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadEventsPassesOverWhatIsNone(t *testing.T) {
	long := `{"event":"result","host":"web9","task":"` + strings.Repeat("x", maxLine) + `"}`
	p := read(t, aPlay, "", "garbage", long, `{"event":5}`, aSkip, long+long, aFact, `{"event":"result","host":"web2","ta`)
	if p.TaskResults != 1 || len(p.hosts) != 1 {
		t.Errorf("%d task results of %d hosts, want 1 of 1", p.TaskResults, len(p.hosts))
	}
}

func TestFollowSeesEventsAsTheyComeAndTheRestAtTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	write := func(text string) {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := f.WriteString(text); err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	// Follow below looks before the file is there, or after: both must do.
	go write(`{"event":"task","task":"0"}` + "\n" + `{"event":"task",`)
	var got []string
	for e, err := range Follow(ctx, path) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Task)
		switch e.Task {
		case "0":
			write(`"task":"1"}` + "\nnoise\n" + strings.Repeat("y", 3*maxLine) + "\n" + `{"event":"task","task":"2"}` + "\n")
		case "2":
			var many strings.Builder
			for i := 3; i < 2000; i++ {
				fmt.Fprintf(&many, `{"event":"task","task":"%d"}`+"\n", i)
			}
			write(many.String())
			cancel()
		}
	}
	if len(got) != 2000 {
		t.Fatalf("%d events, want 2000", len(got))
	}
	for i, task := range got {
		if task != fmt.Sprint(i) {
			t.Fatalf("event %d is of task %q", i, task)
		}
	}
}

func TestFollowEndsWithoutAFile(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for e, err := range Follow(ctx, filepath.Join(t.TempDir(), "none")) {
		t.Errorf("an event without a file: %v, %v", e, err)
	}
}

func FuzzReadEvents(f *testing.F) {
	for _, s := range []string{aPlay, aFact, aSkip, aFailure, anEnd, aFailure[:20], `{"event":"stats","host":"web1","failed":1}`, "\xff\x00"} {
		f.Add([]byte(aPlay + "\n" + s + "\n" + aSkip))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ReadEvents(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		report, err := json.Marshal(p.Report())
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range report {
			if b < ' ' {
				t.Fatalf("the report holds a control character: %q", report)
			}
		}
		for code := range 5 {
			if err := Verdict(End{ExitCode: code}, p, Scope{}); err != nil && strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Fatalf("the verdict has more than one line: %q", err)
			}
		}
		_ = p.Warnings()
	})
}
