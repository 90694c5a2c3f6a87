package tofuapply

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/internal/tofu"
)

// bare is an attempt of which only the words are looked at.
func bare(job orchestrator.Job, dir string) *attempt {
	job.Workspace = "edge"
	return &attempt{
		Attempt: &jobs.Attempt{Job: job},
		module:  tofu.Module{Workspace: orchestrator.Workspace{Name: "edge", Dir: dir, TofuWorkspace: "blue"}},
		chain:   &orchestrator.RunSpec{Playbook: orchestrator.PlaybookRef{Path: "/src/my site.yml"}},
	}
}

const someRun = orchestrator.RunID("run_01")

func TestAgainIsTheCommandOfTheJob(t *testing.T) {
	for _, c := range []struct {
		job       orchestrator.Job
		cancelled bool
		want      string
	}{
		{orchestrator.Job{Run: someRun}, false, "exocomp provision resume run_01"},
		{orchestrator.Job{Run: someRun}, true, "exocomp provision run edge '/src/my site.yml'"},
		{orchestrator.Job{}, false, "exocomp workspace apply edge"},
		{orchestrator.Job{}, true, "exocomp workspace apply edge"},
		{orchestrator.Job{Spec: orchestrator.JobSpec{RefreshOnly: true}}, false, "exocomp workspace refresh edge"},
	} {
		if got := bare(c.job, "/srv").again(c.cancelled); got != c.want {
			t.Errorf("%+v, cancelled %v: %s, want %s", c.job, c.cancelled, got, c.want)
		}
	}
}

func TestLockIsNamedAsFarAsItIsKnown(t *testing.T) {
	a := bare(orchestrator.Job{Run: someRun}, "/srv")
	message, hint := a.locked("tofu plan", tofu.Lock{ID: "0b5-7", Who: "root@box"})
	if !strings.Contains(message, "root@box") || !strings.Contains(hint, "exocomp workspace unlock edge 0b5-7;") {
		t.Errorf("%s; %s", message, hint)
	}
	message, hint = a.locked("tofu plan", tofu.Lock{})
	if strings.Contains(message, "by") || strings.Contains(hint, "unlock") || !strings.Contains(hint, "exocomp provision resume run_01") {
		t.Errorf("of a lock without an id: %s; %s", message, hint)
	}
}

// What a cancelled run has lost is not told to be resumed.
func TestLostCreatesOfACancelledRun(t *testing.T) {
	a := bare(orchestrator.Job{Run: someRun}, t.TempDir())
	lost := []orchestrator.LostCreate{{Address: `vm.a["x"]`, ID: "i-1"}}
	f := a.lostFailure(orchestrator.CodeCancelled, lost)
	if strings.Contains(f.Hint, "resume") || !strings.Contains(f.Hint, "exocomp provision run edge") || f.Code != orchestrator.CodeCancelled {
		t.Errorf("%+v", f)
	}
	if !strings.Contains(f.Hint, a.module.Workspace.ImportCommand(lost...)) {
		t.Errorf("the hint %q does not import", f.Hint)
	}
}

// A state that tofu could not write to its backend is what to save first.
func TestAStateThatCouldNotBeWrittenIsPushed(t *testing.T) {
	dir := t.TempDir()
	a := bare(orchestrator.Job{StartedAt: time.Now().Add(-time.Minute)}, dir)
	path := filepath.Join(dir, erroredState)
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := "TF_WORKSPACE=blue tofu -chdir=" + dir + " state push errored.tfstate; then: exocomp workspace apply edge"
	for _, f := range []*orchestrator.Failure{
		a.ended(jobs.Result{ExitCode: 1}, "tofu apply"),
		a.ended(jobs.Result{ExitCode: 1, Cancelled: true}, "tofu apply"),
		a.lostFailure(orchestrator.CodeFailed, []orchestrator.LostCreate{{Address: "vm.a"}}),
	} {
		if f.Hint != want || !strings.Contains(f.Message, erroredState) {
			t.Errorf("%+v, want the hint %s", f, want)
		}
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	if f := a.ended(jobs.Result{ExitCode: 1}, "tofu apply"); strings.Contains(f.Hint, erroredState) {
		t.Errorf("one that an earlier job left is offered: %+v", f)
	}
}

// The gate names the command that changes the policy and nothing else.
func TestGateSaysHowItOpens(t *testing.T) {
	a := bare(orchestrator.Job{Run: someRun}, "/srv/my infra")
	a.module.Workspace.Approval = orchestrator.ApprovalDestructive
	err := a.gate(tofu.Plan{Changes: []orchestrator.Change{{Address: "vm.a", Action: "delete"}}})
	f := orchestrator.FailureOf(err)
	if f == nil || !strings.Contains(f.Hint, ": exocomp workspace add edge '/srv/my infra' --approval never; then: exocomp provision resume run_01") {
		t.Errorf("%+v", f)
	}
}
