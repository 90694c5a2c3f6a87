package tofu

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// version is the line with which OpenTofu begins every stream.
const version = `{"@message":"OpenTofu 1.12.6","type":"version","tofu":"1.12.6"}` + "\n"

const started = `{"@message":"t.a: Creating...","type":"apply_start","hook":{"resource":{"addr":"t.a"},"action":"create"}}` + "\n"

func TestReadJournal(t *testing.T) {
	tests := []struct {
		name, stream string
		want         Journal
	}{
		{"empty", "", Journal{Torn: true}},
		{"nothing yet", version, Journal{}},
		{"begins in the middle", started, Journal{Creates: []JournalCreate{{Address: "t.a"}}, Torn: true}},
		{"a cut line, then whole ones", version + started[:20] + version + started, Journal{Creates: []JournalCreate{{Address: "t.a"}}, Torn: true}},
		{"started", version + started, Journal{Creates: []JournalCreate{{Address: "t.a"}}}},
		{
			"completed with id",
			version + started + `{"type":"apply_complete","hook":{"resource":{"addr":"t.a"},"action":"create","id_key":"id","id_value":"i-1"}}` + "\n",
			Journal{Creates: []JournalCreate{{Address: "t.a", ID: "i-1", Completed: true}}},
		},
		{
			"errored",
			version + started + `{"type":"apply_errored","hook":{"resource":{"addr":"t.a"},"action":"create"}}` + "\n",
			Journal{Creates: []JournalCreate{{Address: "t.a", Errored: true}}},
		},
		{"an update is no create", version + `{"type":"apply_start","hook":{"resource":{"addr":"t.a"},"action":"update"}}` + "\n", Journal{}},
		{"cut inside a line", version + started + `{"type":"apply_complete","hook":{"reso`, Journal{Creates: []JournalCreate{{Address: "t.a"}}, Torn: true}},
		{"noise", version + "panic: x\n\xff\xfe\n" + started, Journal{Creates: []JournalCreate{{Address: "t.a"}}}},
		{
			"a line too long to keep",
			version + `{"type":"x","@message":"` + strings.Repeat("x", maxMessage) + "\"}\n" + started,
			Journal{Creates: []JournalCreate{{Address: "t.a"}}},
		},
		{
			"diagnostic with place",
			version + `{"type":"diagnostic","diagnostic":{"severity":"error","summary":"Bad","detail":"a\nb","range":{"filename":"main.tf","start":{"line":3}}}}` + "\n" +
				`{"type":"diagnostic","diagnostic":{"severity":"warning","summary":"meh"}}` + "\n",
			Journal{Diagnostics: []Diagnostic{{Summary: "Bad", Detail: "a\nb", File: "main.tf", Line: 3}}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ReadJournal(strings.NewReader(tt.stream))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("journal differs (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzReadJournal(f *testing.F) {
	f.Add(started)
	f.Add(`{"type":"diagnostic","diagnostic":{"severity":"error","summary":"Error acquiring the state lock","detail":"Lock Info:\n  ID:        x\n"}}`)
	f.Fuzz(func(t *testing.T, stream string) {
		j, err := ReadJournal(strings.NewReader(stream))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = j.Lock()
		_ = j.Err()
	})
}

func TestLockNamesItsHolder(t *testing.T) {
	j := Journal{Diagnostics: []Diagnostic{{
		Summary: "Error acquiring the state lock",
		Detail:  "Error message: resource temporarily unavailable\nLock Info:\n  ID:        0b5-7\n  Path:      terraform.tfstate\n  Who:       root@box\n",
	}}}
	lock, ok := j.Lock()
	if !ok || lock != (Lock{ID: "0b5-7", Who: "root@box"}) {
		t.Errorf("Lock = %+v, %v", lock, ok)
	}
}

func TestCompare(t *testing.T) {
	planned := []PlannedCreate{{Address: "t.a"}}
	replaced := []PlannedCreate{{Address: "t.a", PriorID: "old"}}
	begun := Journal{Creates: []JournalCreate{{Address: "t.a"}}}
	done := Journal{Creates: []JournalCreate{{Address: "t.a", ID: "i-1", Completed: true}}}
	torn := Journal{Torn: true}
	lost := func(p PlannedCreate, id string) []Lost { return []Lost{{PlannedCreate: p, ID: id}} }
	errored := Journal{Creates: []JournalCreate{{Address: "t.a", Errored: true}}}
	tests := []struct {
		name     string
		planned  []PlannedCreate
		journal  Journal
		sameBoot bool
		state    State
		want     []Lost
	}{
		{"not started", planned, Journal{}, true, State{}, nil},
		{"started, in state", planned, begun, true, State{"t.a": "i-1"}, nil},
		{"started, not in state", planned, begun, true, State{}, lost(planned[0], "")},
		{"completed, not in state", planned, done, true, State{}, lost(planned[0], "i-1")},
		{"errored", planned, errored, true, State{}, nil},
		{"another boot, not started", planned, Journal{}, false, State{}, lost(planned[0], "")},
		{"torn, not started", planned, torn, true, State{}, lost(planned[0], "")},
		{"another boot, errored", planned, errored, false, State{}, lost(planned[0], "")},
		{"another boot, in state", planned, Journal{}, false, State{"t.a": ""}, nil},
		{"replacement, state still old", replaced, done, true, State{"t.a": "old"}, lost(replaced[0], "i-1")},
		{"replacement, state new", replaced, done, true, State{"t.a": "i-1"}, nil},
		{"replacement, nothing in state", replaced, begun, true, State{}, lost(replaced[0], "")},
		{"no state to read", planned, begun, true, nil, lost(planned[0], "")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Compare(tt.planned, tt.journal, tt.sameBoot, tt.state)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("lost differs (-want +got):\n%s", diff)
			}
		})
	}
}
