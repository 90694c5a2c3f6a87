package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc/rpctest"
)

// submitting writes a playbook and returns the command line that runs it.
func submitting(t *testing.T, flags ...string) []string {
	t.Helper()
	play := filepath.Join(t.TempDir(), "site.yml")
	if err := os.WriteFile(play, []byte("- hosts: all\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return append([]string{"provision", "run", "edge", play}, flags...)
}

// ending ends the first run that is submitted to svc.
func ending(t *testing.T, svc *rpctest.Service, state orchestrator.RunState, step orchestrator.StepState, f *orchestrator.Failure) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = svc.WatchEvents(ctx, orchestrator.EventFilter{}, func(e orchestrator.Event) error {
			if e.Kind == orchestrator.EventRunSubmitted {
				return svc.SetRun(string(e.Run), func(r *orchestrator.Run) {
					r.State = state
					r.Steps[0].State, r.Steps[0].Failure = step, f
				})
			}
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

func serveEdge(t *testing.T) (*rpctest.Service, *rpctest.Daemon) {
	t.Helper()
	svc := rpctest.NewService()
	if _, err := svc.AddWorkspace(t.Context(), orchestrator.Workspace{Name: "edge", Dir: "/srv", Approval: orchestrator.ApprovalNever}); err != nil {
		t.Fatal(err)
	}
	return svc, rpctest.Serve(t, svc)
}

func TestWaitEndsAsTheWorkDid(t *testing.T) {
	failed := func(code orchestrator.Code) *orchestrator.Failure {
		return &orchestrator.Failure{Code: code, Message: "it did not work"}
	}
	for _, tt := range []struct {
		name  string
		state orchestrator.RunState
		step  orchestrator.StepState
		f     *orchestrator.Failure
		code  int
	}{
		{"succeeded", orchestrator.RunSucceeded, orchestrator.StepSucceeded, nil, exitDone},
		{"failed", orchestrator.RunFailed, orchestrator.StepFailed, failed(orchestrator.CodeFailed), exitFailed},
		{"failed by a mistake", orchestrator.RunFailed, orchestrator.StepFailed, failed(orchestrator.CodeInvalid), exitFailed},
		{"refused", orchestrator.RunFailed, orchestrator.StepFailed, failed(orchestrator.CodeRefused), exitRefused},
		{"cancelled", orchestrator.RunCancelled, orchestrator.StepCancelled, failed(orchestrator.CodeCancelled), exitFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			svc, d := serveEdge(t)
			ending(t, svc, tt.state, tt.step, tt.f)
			got := run(t, d, submitting(t, "--wait")...)
			if got.code != tt.code {
				t.Errorf("exit code %d, want %d: %+v", got.code, tt.code, got)
			}
			if !strings.Contains(got.out, string(tt.state)) || tt.f != nil && !strings.Contains(got.out, tt.f.Message) {
				t.Errorf("the end does not show: %+v", got)
			}
		})
	}
}

func TestWaitMayBeGivenUp(t *testing.T) {
	_, d := serveEdge(t)
	got := run(t, d, submitting(t, "--wait-timeout", "50ms")...)
	if got.code != exitTimeout || !strings.Contains(got.err, "goes on") || !strings.Contains(got.err, "exocomp provision logs -f run_") {
		t.Errorf("a wait that was too long: %+v", got)
	}
}

// TestSubmitPrintsTheID: alone on standard output, so that a script can read it.
func TestSubmitPrintsTheID(t *testing.T) {
	_, d := serveEdge(t)
	for want, line := range map[string][]string{
		"run_": submitting(t),
		"job_": {"workspace", "apply", "edge"},
	} {
		got := run(t, d, line...)
		if got.code != exitDone || !strings.HasPrefix(got.out, want) || strings.Count(got.out, "\n") != 1 {
			t.Errorf("%v prints %+v", line, got)
		}
	}
}

func TestMistakesPointAtTheHelp(t *testing.T) {
	for next, line := range map[string][]string{
		"exocomp --help":               {"nope"},
		"exocomp jobs --help":          {"jobs", "nope"},
		"exocomp provision run --help": {"provision", "run", "edge"},
		"exocomp version --help":       {"version", "--nope"},
	} {
		got := run(t, nil, line...)
		if got.code != exitUsage || !strings.HasSuffix(got.err, "\n  next: "+next+"\n") {
			t.Errorf("%v: %+v, want the hint %s", line, got, next)
		}
	}
	if got := run(t, nil, "jobs", "list"); got.code != exitNoDaemon || !strings.Contains(got.err, "next: start it: exocomp serve") {
		t.Errorf("without a daemon: %+v", got)
	}
}
