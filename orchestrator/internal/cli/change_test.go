package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc/rpctest"
)

// changes are the commands that submit or change, each with what prepares the
// service of [chain] and returns the arguments of its golden run.
var changes = map[string]func(*testing.T, *rpctest.Service) []string{
	"drain":            with("--off"),
	"provision run":    with("edge", filepath.Join("testdata", "play", "site.yml")),
	"provision resume": with("edge"),
	"handoff run":      with("edge", filepath.Join("testdata", "play", "site.yml")),
	"provision cancel": func(t *testing.T, svc *rpctest.Service) []string {
		if err := svc.SetRun("edge", func(r *orchestrator.Run) { r.State = orchestrator.RunRunning }); err != nil {
			t.Fatal(err)
		}
		return []string{"edge"}
	},
	"playbook vendor": with("--requirements", filepath.Join("testdata", "play", "site.yml")),
	"playbook run":    with(filepath.Join("testdata", "play", "site.yml"), "--inventory", "tf:edge", "--egress", "443", "--keep-going"),
	"schedule add":    with("weekly", "--cron", "0 30 4 * * sun", "--kind", "apply", "--target", "tf:edge"),
	"schedule pause":  with("nightly"),
	"schedule resume": with("nightly"),
	"schedule remove": with("nightly"),
	"schedule run-now": func(t *testing.T, svc *rpctest.Service) []string {
		if err := svc.SetFires("nightly", nightlyFires()[1]); err != nil {
			t.Fatal(err)
		}
		return []string{"nightly"}
	},
	"workspace add":     with("core", "/srv/core", "--approval", "never"),
	"workspace apply":   with("edge"),
	"workspace refresh": with("edge"),
	"workspace unlock":  with("edge", "lock"),
	"workspace remove":  with("edge"),
	"inventory link":    func(t *testing.T, _ *rpctest.Service) []string { return []string{"tf:edge", linkDir(t)} },
	"host onboard":      with("edge/web1"),
	"host forget":       with("edge/web1"),
	"jobs cancel":       with("job_00000000000000000000000002"),
	"jobs redrive":      with("job_00000000000000000000000002"),
}

func with(args ...string) func(*testing.T, *rpctest.Service) []string {
	return func(*testing.T, *rpctest.Service) []string { return args }
}

// TestChangesPrintWhatTheyChanged: as JSON alone on standard output.
func TestChangesPrintWhatTheyChanged(t *testing.T) {
	for name, prepare := range changes {
		t.Run(name, func(t *testing.T) {
			svc, d := chain(t)
			state := orchestrator.JobRunning
			if name == "jobs redrive" {
				state = orchestrator.JobInterrupted
			}
			if err := svc.SetJob("job_00000000000000000000000002", func(j *orchestrator.Job) { j.State = state }); err != nil {
				t.Fatal(err)
			}
			line := append(strings.Fields(name), prepare(t, svc)...)
			got := run(t, d, append(line, "--json")...)
			if got.code != exitDone || !json.Valid([]byte(got.out)) {
				t.Fatalf("%+v", got)
			}
			golden(t, name+".json", steady(got.out))
		})
	}
}

// TestWaitPrintsHowItEnded: with --json the run as it is in the end, on standard
// output, with the exit code of the work.
func TestWaitPrintsHowItEnded(t *testing.T) {
	svc, d := serveEdge(t)
	ending(t, svc, orchestrator.RunFailed, orchestrator.StepFailed, &orchestrator.Failure{Code: orchestrator.CodeFailed, Message: "no"})
	got := run(t, d, submitting(t, "--wait", "--json")...)
	var r orchestrator.Run
	if err := json.Unmarshal([]byte(got.out), &r); err != nil || got.code != exitFailed || r.State != orchestrator.RunFailed {
		t.Errorf("%+v, %v: want the failed run", got, err)
	}
}

// TestOnboardByHandIsAListInJSON, a host each.
func TestOnboardByHandIsAListInJSON(t *testing.T) {
	_, d := chain(t)
	got := run(t, d, "host", "onboard", "edge/web1", "edge/here", "--print", "--json")
	var all []struct{ Command []string }
	if err := json.Unmarshal([]byte(got.out), &all); err != nil || len(all) != 2 || all[0].Command[0] != "ansible-playbook" {
		t.Errorf("%+v: %v", got, err)
	}
	got = run(t, d, "host", "onboard", "edge/web1", "--print", "--ssh-identity", "/keys/mine")
	if !strings.Contains(got.err, "ansible-playbook --private-key /keys/mine ") {
		t.Errorf("%+v: the command does not log in with the given key", got)
	}
	if got = run(t, d, "host", "onboard", "edge/web1", "--print", "--ssh-identity", "/a", "--ssh-identity", "/b"); got.code != exitUsage {
		t.Errorf("%+v: two keys, of which ansible-playbook takes one", got)
	}
}

// TestHostsAreAListThoughEmpty, whoever reads the JSON.
func TestHostsAreAListThoughEmpty(t *testing.T) {
	svc, d := chain(t)
	v := svc.Inventories["edge"]
	v.Hosts, v.Inventory.Hosts = nil, nil
	svc.Inventories["edge"] = v
	for _, line := range []string{"inventory list --json", "inventory show edge --json"} {
		if got := run(t, d, strings.Fields(line)...); !strings.Contains(got.out, `"hosts": []`) {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

// TestADrainIsNamedToWhoeverWaits: nothing begins, and everything that shows it
// says why.
func TestADrainIsNamedToWhoeverWaits(t *testing.T) {
	svc, d := serveEdge(t)
	const note = "the daemon is draining: what is queued begins after: exocomp drain --off"
	for _, line := range [][]string{submitting(t), {"workspace", "apply", "edge"}} {
		if got := run(t, d, line...); got.code != exitDone {
			t.Fatalf("%+v", got)
		}
	}
	lines := map[string][]string{
		"run":    submitting(t),
		"wait":   submitting(t, "--wait-timeout", "50ms"),
		"apply":  {"workspace", "apply", "edge"},
		"follow": {"workspace", "apply", "edge", "--wait-timeout", "50ms"},
		"runs":   {"provision", "list"},
		"status": {"provision", "status", "edge"},
		"jobs":   {"jobs", "list"},
	}
	for _, draining := range []bool{true, false} {
		svc.Status.Draining = draining
		for name, line := range lines {
			if got := run(t, d, line...); strings.Contains(got.err, note) != draining {
				t.Errorf("%s while draining is %v: %+v", name, draining, got)
			}
		}
	}
	if got := run(t, d, "drain", "--off"); !strings.Contains(got.err, "was not draining") {
		t.Errorf("the end of no drain: %+v", got)
	}
	if got := run(t, d, "drain"); got.code != exitDone {
		t.Errorf("a drain: %+v", got)
	}
	if got := run(t, d, "drain", "--off"); !strings.Contains(got.err, "the drain has ended") {
		t.Errorf("the end of a drain: %+v", got)
	}
}

// TestARefreshIsNoApply, in any word about it.
func TestARefreshIsNoApply(t *testing.T) {
	_, d := serveEdge(t)
	got := run(t, d, "workspace", "refresh", "edge")
	if !strings.Contains(got.err, "(workspace-refresh)") {
		t.Errorf("submit: %+v", got)
	}
	id := strings.TrimSpace(got.out)
	for _, line := range [][]string{{"jobs", "list"}, {"jobs", "show", id}} {
		if got := run(t, d, line...); !strings.Contains(got.out, "workspace-refresh") || strings.Contains(got.out, "workspace-apply") {
			t.Errorf("%v: %+v", line, got)
		}
	}
}

// TestARunIsSomewhere: the list says where each run is.
func TestARunIsSomewhere(t *testing.T) {
	step := func(kind orchestrator.StepKind, s orchestrator.StepState) orchestrator.Step {
		return orchestrator.Step{Kind: kind, State: s}
	}
	done, next := step(orchestrator.StepTofuApply, orchestrator.StepSucceeded), orchestrator.StepSSHWait
	for want, steps := range map[string][]orchestrator.Step{
		"":                  {done},
		"ssh-wait":          {done, step(next, orchestrator.StepRunning)},
		"ssh-wait (queued)": {done, step(next, orchestrator.StepReady)},
	} {
		if got := at(orchestrator.Run{Steps: steps}); got != want {
			t.Errorf("at %q, want %q", got, want)
		}
	}
	for _, s := range []orchestrator.StepState{orchestrator.StepFailed, orchestrator.StepCancelled, orchestrator.StepAwaitingApproval} {
		if got := at(orchestrator.Run{Steps: []orchestrator.Step{done, step(next, s)}}); got != "ssh-wait" {
			t.Errorf("%s: at %q", s, got)
		}
	}
	if got := at(orchestrator.Run{Steps: []orchestrator.Step{step(next, orchestrator.StepBlocked)}}); got != "" {
		t.Errorf("a run behind others is at %q", got)
	}
}

func TestVersionIsAFlagToo(t *testing.T) {
	if a, b := run(t, nil, "--version"), run(t, nil, "version"); a != b || a.out == "" {
		t.Errorf("--version: %+v\nversion: %+v", a, b)
	}
}
