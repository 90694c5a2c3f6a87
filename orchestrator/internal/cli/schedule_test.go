package cli

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc/rpctest"
)

var fireTime = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// addNightly gives a service the schedule that the golden files show.
func addNightly(t *testing.T, svc *rpctest.Service, fires ...orchestrator.Fire) {
	t.Helper()
	_, err := svc.AddSchedule(context.Background(), orchestrator.Schedule{
		Name: "nightly", Kind: orchestrator.SchedulePlay, Workspace: "edge", Cron: "0 0 3 * * *", Timezone: "UTC",
		ConcurrencyKey: "fleet", Playbook: "/srv/play/site.yml", Args: []string{"--limit", "web1 " + hostile}, Egress: []int{443}, KeepGoing: true,
		CreatedBy: orchestrator.Peer{Name: "ops"}, CreatedAt: fireTime,
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range fires {
		fires[i].ID, fires[i].Schedule, fires[i].Workspace, fires[i].At = int64(len(fires)-i), "nightly", "edge", fireTime
	}
	if err := svc.SetFires("nightly", fires...); err != nil {
		t.Fatal(err)
	}
}

func nightlyFires() []orchestrator.Fire {
	return []orchestrator.Fire{
		{State: orchestrator.FireRefused, Reason: "tf:edge names no hosts " + hostile, RecordedAt: fireTime, DecidedAt: fireTime},
		{State: orchestrator.FireStarted, Manual: true, By: orchestrator.Peer{Name: "ops"}, Job: "job_00000000000000000000000002", JobState: orchestrator.JobSucceeded, RecordedAt: fireTime, DecidedAt: fireTime},
		{State: orchestrator.FireStarted, Job: "job_00000000000000000000000001", JobState: orchestrator.JobFailed, JobFailure: "converged nobody: hosts: web matched none of web1 " + hostile, RecordedAt: fireTime, DecidedAt: fireTime},
	}
}

func TestScheduleAddNamesWhatIsWrong(t *testing.T) {
	_, d := serveEdge(t)
	line := func(rest ...string) []string { return append([]string{"schedule", "add", "nightly"}, rest...) }
	for name, c := range map[string]struct {
		line []string
		says string
	}{
		"nothing":              {line(), "--cron is missing: name the instants, such as '0 0 3 * * *' for every day at 3\n  --target is missing"},
		"no playbook":          {line("--cron", "0 0 3 * * *", "--target", "tf:edge"), "--kind play needs a playbook\n  next: name it behind --"},
		"no --":                {line("--cron", "0 0 3 * * *", "--target", "tf:edge", "site.yml"), `unexpected argument "site.yml": exocomp schedule add NAME [-- PLAYBOOK ARGS]`},
		"arguments alone":      {line("--cron", "0 0 3 * * *", "--target", "tf:edge", "--", "--check"), `the playbook stands first: "--check" is none`},
		"a flag of Ansible's":  {line("--cron", "0 0 3 * * *", "--target", "tf:edge", "--check"), "what is ansible-playbook's stands behind --"},
		"an apply with a play": {line("--cron", "0 0 3 * * *", "--target", "tf:edge", "--kind", "apply", "--", "site.yml"), "--kind apply runs no playbook"},
		"a kind":               {line("--cron", "0 0 3 * * *", "--target", "tf:edge", "--kind", "dance"), `--kind "dance" is unknown: use play or apply`},
		"a key":                {line("--cron", "0 0 3 * * *", "--target", "tf:edge", "--concurrency-key", "a b", "--", "site.yml"), `--concurrency-key "a b" is not allowed`},
		"a name":               {[]string{"schedule", "add", "a/b", "--cron", "0 0 3 * * *", "--target", "tf:edge", "--", "site.yml"}, `schedule name "a/b" is not allowed`},
		"a workspace":          {line("--cron", "0 0 3 * * *", "--target", "tf:core", "--", "site.yml"), `"core"`},
		"a target":             {line("--cron", "0 0 3 * * *", "--target", "tf:", "--", "site.yml"), "the workspace name is empty"},
	} {
		if got := run(t, d, c.line...); got.code != exitUsage || !strings.Contains(got.err, c.says) || got.out != "" {
			t.Errorf("%s: %+v, want it to say %q", name, got, c.says)
		}
	}
}

func TestScheduleAddShowsTheNextThreeFires(t *testing.T) {
	_, d := serveEdge(t)
	got := run(t, d, "schedule", "add", "nightly", "--cron", "0 0 3 * * *", "--target", "tf:edge", "--timezone", "Europe/Berlin", "--", "/srv/site.yml", "--diff")
	want := "schedule nightly: play /srv/site.yml --diff against tf:edge\nnext fires: 2031-01-01 04:00:00 CET, 2031-01-02 04:00:00 CET, 2031-01-03 04:00:00 CET\n"
	if got.code != exitDone || got.err != want {
		t.Errorf("%+v, want %q", got, want)
	}
}

func TestRunNowSaysWhatBecameOfIt(t *testing.T) {
	job := orchestrator.JobID("job_00000000000000000000000002")
	for name, c := range map[string]struct {
		fire      orchestrator.Fire
		code      int
		out, says string
	}{
		"started":   {orchestrator.Fire{State: orchestrator.FireStarted, Job: job}, exitDone, string(job) + "\n", "follow it: exocomp jobs logs -f " + string(job)},
		"waiting":   {orchestrator.Fire{State: orchestrator.FireWaiting, Reason: "waits for job_x"}, exitDone, "", "waiting: waits for job_x"},
		"coalesced": {orchestrator.Fire{State: orchestrator.FireCoalesced, Reason: "another waits"}, exitDone, "", "coalesced: another waits"},
		"skipped":   {orchestrator.Fire{State: orchestrator.FireSkipped, Reason: "run_x is not finished"}, exitRefused, "", "nothing was started: skipped: run_x is not finished"},
		"refused":   {orchestrator.Fire{State: orchestrator.FireRefused, Reason: "no hosts"}, exitRefused, "", "nothing was started: refused: no hosts"},
	} {
		svc, d := serveEdge(t)
		addNightly(t, svc, c.fire)
		if got := run(t, d, "schedule", "run-now", "nightly"); got.code != c.code || got.out != c.out || !strings.Contains(got.err, c.says) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A fire that waits is waited for, and then its job is followed.
func TestRunNowWaitsForAFireThatWaits(t *testing.T) {
	for _, state := range []orchestrator.FireState{orchestrator.FireWaiting, orchestrator.FireCoalesced} {
		svc, d := chain(t)
		job := orchestrator.JobID("job_00000000000000000000000002")
		waits := orchestrator.Fire{State: orchestrator.FireWaiting, Reason: "waits for job_x", RecordedAt: fireTime}
		fires := []orchestrator.Fire{waits}
		if state == orchestrator.FireCoalesced {
			fires = append([]orchestrator.Fire{{State: state, Reason: "another waits"}}, fires...)
		}
		addNightly(t, svc, fires...)
		svc.Emit(orchestrator.Event{Kind: orchestrator.EventFireDue, Workspace: "edge"})
		started := make(chan struct{})
		go func() {
			defer close(started)
			after := slices.Clone(fires) // the service has the other one
			last := &after[len(after)-1]
			last.State, last.Reason, last.Job = orchestrator.FireStarted, "", job
			if err := svc.SetFires("nightly", after...); err != nil {
				t.Error(err)
			}
			svc.Emit(orchestrator.Event{Kind: orchestrator.EventFireStarted, Workspace: "edge"})
			svc.Emit(orchestrator.Event{Kind: orchestrator.EventJobFinished, Workspace: "edge", Job: job})
		}()
		got := run(t, d, "schedule", "run-now", "nightly", "--wait")
		<-started
		if got.code != exitDone || !strings.Contains(got.out, string(job)) {
			t.Errorf("%s: %+v", state, got)
		}
	}
}

// The schedule is removed while its fire is waited for: what became of the fire is
// told, and not that there is no such schedule.
func TestRunNowOutlivesItsSchedule(t *testing.T) {
	svc, d := chain(t)
	waits := orchestrator.Fire{ID: 1, Schedule: "nightly", Workspace: "edge", State: orchestrator.FireWaiting, Reason: "waits for job_x", RecordedAt: fireTime}
	addNightly(t, svc, waits)
	svc.Emit(orchestrator.Event{Kind: orchestrator.EventFireDue, Workspace: "edge"})
	svc.AfterRun = func() { // between the answer and the wait
		skipped := waits
		skipped.State, skipped.Reason = orchestrator.FireSkipped, "the schedule was removed by ops"
		if err := svc.SetFires("nightly", skipped); err != nil {
			t.Error(err)
		}
		if err := svc.RemoveSchedule(context.Background(), "nightly"); err != nil {
			t.Error(err)
		}
		svc.Emit(orchestrator.Event{Kind: orchestrator.EventFireSkipped, Workspace: "edge"})
	}
	got := run(t, d, "schedule", "run-now", "nightly", "--wait")
	if got.code != exitRefused || !strings.Contains(got.err, "skipped: the schedule was removed by ops") {
		t.Errorf("%+v", got)
	}
}
