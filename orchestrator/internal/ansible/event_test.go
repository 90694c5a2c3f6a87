package ansible

import (
	"bytes"
	"encoding/json"
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
