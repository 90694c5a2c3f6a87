package ledger

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/exocomp/exocomp/orchestrator"
)

var update = flag.Bool("update", false, "write the generated files")

// document of the state machines, for people.
const stateDocument = "../../../docs/state-machine.md"

func TestMigration1IsGenerated(t *testing.T) {
	golden(t, "migrations/0001_initial.sql", migration1(t))
}

// A person's sqlite3 may be older than the one in here, to which json_valid(NULL)
// is NULL: it would call every missing document damage.
func TestAMissingDocumentIsValidToEverySQLite(t *testing.T) {
	for line := range strings.Lines(string(migration1(t))) {
		if strings.Contains(line, "json_valid") && !strings.HasPrefix(line, "--") &&
			!strings.Contains(line, "NOT NULL CHECK") && !strings.Contains(line, "IS NULL OR json_valid") {
			t.Errorf("this CHECK holds for NULL by json_valid alone: %s", strings.TrimSpace(line))
		}
	}
}

func TestDocumentIsGenerated(t *testing.T) {
	golden(t, stateDocument, []byte(stateMachineDocument()))
}

// golden holds the file at path equal to want, or writes it with -update.
func golden(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run go generate in orchestrator/internal/ledger)", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from what the domain's tables say: run go generate in orchestrator/internal/ledger", path)
	}
}

// migration1 renders the first migration from its template and the domain.
func migration1(t *testing.T) []byte {
	t.Helper()
	var stepPairs, jobPairs [][2]string
	for _, s := range orchestrator.StepTransitions {
		if pair := [2]string{string(s.From), string(s.To)}; !slices.Contains(stepPairs, pair) {
			stepPairs = append(stepPairs, pair)
		}
	}
	for _, j := range jobTransitions {
		jobPairs = append(jobPairs, [2]string{string(j.from), string(j.to)})
	}
	data := map[string]any{
		"ApplicationID":    applicationID,
		"MaxCrashAttempts": orchestrator.MaxCrashAttempts,
		"MaxCrashes":       orchestrator.MaxCrashes,
		"Progress":         orchestrator.EventJobProgress,
		"LogRetention":     orchestrator.LogRetention.Nanoseconds(),
		"RunKinds":         texted(orchestrator.RunKinds),
		"StepKinds":        texted(orchestrator.StepKinds),
		"JobKinds":         texted(orchestrator.JobKinds),
		"RunStates":        texted(orchestrator.RunStates),
		"StepStates":       texted(orchestrator.StepStates),
		"JobStates":        texted(orchestrator.JobStates),
		"ScheduleKinds":    texted(orchestrator.ScheduleKinds),
		"FireStates":       texted(orchestrator.FireStates),
		"RunFinal":         texted(filter(orchestrator.RunStates, orchestrator.RunState.Final)),
		"StepFinal":        texted(filter(orchestrator.StepStates, orchestrator.StepState.Final)),
		"JobFinal":         texted(filter(orchestrator.JobStates, orchestrator.JobState.Final)),
		"StepFailed":       texted([]orchestrator.StepState{orchestrator.StepFailed, orchestrator.StepCancelled}),
		"JobFailed":        texted([]orchestrator.JobState{orchestrator.JobFailed, orchestrator.JobCancelled, orchestrator.JobInterrupted}),
		"StepTransitions":  stepPairs,
		"JobTransitions":   jobPairs,
		"Approvals":        texted([]orchestrator.ApprovalPolicy{orchestrator.ApprovalNever, orchestrator.ApprovalDestructive, orchestrator.ApprovalAlways}),
		"Origins":          texted([]orchestrator.StepOrigin{orchestrator.OriginRun, orchestrator.OriginCaller}),
		"PinSources":       texted([]orchestrator.PinSource{orchestrator.PinFirstUse, orchestrator.PinStated, orchestrator.PinRotated}),
		"Logins":           texted([]orchestrator.Login{orchestrator.LoginAutomation, orchestrator.LoginInventory}),
	}
	const file = "migrations/0001_initial.sql.tmpl"
	tmpl, err := template.New(filepath.Base(file)).Funcs(template.FuncMap{
		"list":  func(v []string) string { return quoted(v, "%s", ", ") },
		"rows":  func(v []string) string { return quoted(v, "(%s)", ", ") },
		"pairs": sqlPairs,
	}).ParseFiles(file)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	out.WriteString("-- Generated from 0001_initial.sql.tmpl; do not edit.\n\n")
	if err := tmpl.Execute(&out, data); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func texted[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

func filter[T any](list []T, keep func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(v T) bool { return !keep(v) })
}

func quoted(list []string, format, separator string) string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = fmt.Sprintf(format, "'"+v+"'")
	}
	return strings.Join(out, separator)
}

func sqlPairs(list [][2]string) string {
	out := make([]string, len(list))
	for i, p := range list {
		out[i] = fmt.Sprintf("    ('%s', '%s')", p[0], p[1])
	}
	return strings.Join(out, ",\n")
}

// stateMachineDocument draws both state machines.
func stateMachineDocument() string {
	var b strings.Builder
	b.WriteString(`<!-- Generated from the tables in orchestrator/step.go and orchestrator/internal/ledger/job.go: do not edit, run go generate in orchestrator/internal/ledger. -->

# State machines

The ledger refuses every transition that is not drawn here, by triggers that are
generated from the same tables. Besides, a step becomes ready only when the step
before it has succeeded, and succeeds without running only where somebody else did
its work: the apply that a resource is part of (supply, step 1 alone), or an older
run of the workspace, whose step of that number and kind succeeded (take).

## Step

` + "```mermaid\nstateDiagram-v2\n    [*] --> blocked\n")
	for _, s := range orchestrator.StepTransitions {
		fmt.Fprintf(&b, "    %s --> %s: %s\n", node(s.From), node(s.To), s.Trigger)
	}
	for _, s := range orchestrator.StepStates {
		if s.Final() {
			fmt.Fprintf(&b, "    %s --> [*]\n", node(s))
		}
	}
	b.WriteString("```\n\n" + `A run's state follows from its steps': cancelled or failed where one of them is, awaiting-approval
while one waits for a person, succeeded when all have, queued while all are blocked, else running.

## Job

` + "```mermaid\nstateDiagram-v2\n    [*] --> queued\n")
	for _, j := range jobTransitions {
		fmt.Fprintf(&b, "    %s --> %s\n", node(j.from), node(j.to))
	}
	for _, j := range orchestrator.JobStates {
		if j.Final() {
			fmt.Fprintf(&b, "    %s --> [*]\n", node(j))
		}
	}
	b.WriteString("```\n\n" + `An interrupted job of a step is followed by a new job of the same step; an interrupted standalone job
waits for ` + "`exocomp jobs redrive`" + `.
`)
	return b.String()
}

// node names a state in mermaid, where a dash would end the name.
func node[T ~string](state T) string { return strings.ReplaceAll(string(state), "-", "_") }
