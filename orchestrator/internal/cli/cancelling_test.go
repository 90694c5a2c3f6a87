package cli

import (
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// A cancel that is waited for is seen, and so is how not to wait.
func TestStatusShowsThatACancelWasRequested(t *testing.T) {
	svc, d := serveEdge(t)
	for _, line := range [][]string{submitting(t), {"workspace", "apply", "edge"}} {
		if got := run(t, d, line...); got.code != exitDone {
			t.Fatalf("%+v", got)
		}
	}
	list, err := svc.ListJobs(t.Context(), orchestrator.JobFilter{})
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	id := list[0].ID // stands for the step's
	if err := svc.SetRun("edge", func(r *orchestrator.Run) { r.Steps[0].State, r.Steps[0].Job = orchestrator.StepRunning, id }); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		asked, force bool
		want         string
	}{{false, false, ""}, {true, false, "--force"}, {true, true, "by force"}} {
		err := svc.SetJob(id, func(j *orchestrator.Job) {
			j.State, j.CancelRequested, j.CancelForce = orchestrator.JobRunning, c.asked, c.force
		})
		if err != nil {
			t.Fatal(err)
		}
		got := run(t, d, "provision", "status", "edge")
		if strings.Contains(got.err, "requested") != c.asked || !strings.Contains(got.err, c.want) {
			t.Errorf("asked %v, force %v: %+v", c.asked, c.force, got)
		}
	}
}
