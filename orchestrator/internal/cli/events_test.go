package cli

import (
	"context"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

func TestEventsAreListedByRunAndLimited(t *testing.T) {
	_, d := chain(t)
	all := run(t, d, "events")
	lines := strings.SplitAfter(strings.TrimSuffix(all.out, "\n"), "\n")
	if all.code != exitDone || len(lines) < 3 {
		t.Fatalf("events: %+v", all)
	}
	if got := run(t, d, "events", "--limit", "2"); got.out != strings.Join(lines[len(lines)-2:], "")+"\n" {
		t.Errorf("--limit 2 printed\n%s\nwant the newest two of\n%s", got.out, all.out)
	}
	if got := run(t, d, "events", "--run", "edge"); got.code != exitDone || got.out == "" {
		t.Errorf("the newest run of a workspace: %+v", got)
	}
	for _, ref := range []string{"nope", "run_nope", "run_01ARZ3NDEKTSV4RRFFQ69G5FAV"} {
		if got := run(t, d, "events", "--run", ref); got.code != exitUsage || got.out != "" {
			t.Errorf("--run %s: %+v, want exit code %d", ref, got, exitUsage)
		}
	}
}

func TestMistakesInNumbersAreRefused(t *testing.T) {
	svc, d := chain(t)
	for _, line := range []string{"jobs list --limit -1", "provision list --limit -1", "events --limit -1", "jobs list --limit x"} {
		if got := run(t, d, strings.Fields(line)...); got.code != exitUsage || !strings.Contains(got.err, "--limit") {
			t.Errorf("%s: %+v, want exit code %d", line, got, exitUsage)
		}
	}
	got := run(t, d, "provision", "resume", "edge", "--ssh-wait", "0s")
	if got.code != exitUsage || !strings.Contains(got.err, "--ssh-wait 0s is not above 0s") {
		t.Errorf("resume --ssh-wait 0s: %+v", got)
	}
	if r, err := svc.GetRun(context.Background(), "edge"); err != nil || r.State != orchestrator.RunFailed {
		t.Errorf("the run is %s, %v: a refused resume changes nothing", r.State, err)
	}
}
