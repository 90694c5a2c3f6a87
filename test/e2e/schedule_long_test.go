//go:build long

package e2e

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// TestLongGateSchedule: a recurring converge that a new host joins by itself.
func TestLongGateSchedule(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	web1, web2 := s.host("web1"), s.host("web2")
	s.start()
	s.workspace("edge", map[string]vars{"web1": hostVars(web1)})
	play := s.playbook("site", rawPlay("tf:edge", "echo x >>/tmp/converged"))
	s.converge("edge", play)
	s.ok("schedule", "add", "fleet-converge", "--cron", "*/20 * * * * *", "--kind", "play", "--target", "tf:edge",
		"--concurrency-key", "fleet-converge", "--", play)
	before := jsonOf[orchestrator.ScheduleView](s, "schedule", "show", "fleet-converge").Schedule
	s.writeHosts("edge", map[string]vars{"web1": hostVars(web1), "web2": hostVars(web2)})
	apply := s.awaitJob(s.ok("workspace", "apply", "edge").stdout)
	f := s.awaitFire("fleet-converge", func(f orchestrator.Fire) bool { return started(f) && f.DecidedAt.After(apply.FinishedAt) })
	job := s.awaitJob(string(f.Job))
	s.holds(job.State == orchestrator.JobSucceeded && strings.HasPrefix(s.fileOn(web2, "/tmp/converged"), "x\n"),
		"the next tick converges a host that a later workspace apply added", job)
	s.holdsOnboarded(web2)
	view := jsonOf[rpc.InventoryView](s, "inventory", "show", "tf:edge")
	s.holds(!slices.ContainsFunc(view.Hosts, func(h rpc.InventoryHost) bool {
		return h.AdmittedAt.IsZero() || h.Login != orchestrator.LoginAutomation || h.Fingerprint == ""
	}), "it was pinned, onboarded and admitted by that", view.Hosts)
	s.ok("schedule", "pause", "fleet-converge")
	after := jsonOf[orchestrator.ScheduleView](s, "schedule", "show", "fleet-converge").Schedule
	after.Paused, after.UpdatedAt = before.Paused, before.UpdatedAt
	s.holds(reflect.DeepEqual(before, after), "nothing about the schedule changed", before, after)
	for _, f := range s.fires("fleet-converge") {
		if f.Job != "" {
			s.awaitJob(string(f.Job))
		}
	}
	s.assertClean()
}

// Around the job of a fire the daemon dies, too.
func TestLongAFiresJobSurvivesTheDaemon(t *testing.T) {
	t.Parallel()
	s := localSite(t)
	s.survivesFires("after-intent:play", "after-fork:play", "after-result:play", "after-release:playbook-run")
}

// A schedule fires by itself, with the playbook as it is then, and only once.
func TestLongScheduleFiresTheEditedPlay(t *testing.T) {
	t.Parallel()
	s := localSite(t)
	g := s.gate("edited")
	at := s.scheduleSoon("nightly", "false")
	s.playbook("nightly", rawPlay("tf:edge", g.count()))
	f := s.awaitFire("nightly", started)
	s.holds(f.At.Equal(at) && !f.Manual, "it fires at its instant", f, at)
	job := s.awaitJob(string(f.Job))
	s.holds(job.State == orchestrator.JobSucceeded && job.Kind == orchestrator.JobPlaybookRun && job.Spec.Schedule == "nightly", "its job is a playbook run of it", job)
	g.ran(1)
	s.holds(len(s.fires("nightly")) == 1, "it fires once", s.fires("nightly"))
	r := s.ok("schedule", "list")
	s.holds(strings.Contains(r.stdout, string(job.ID)+" succeeded"), "the list names how it ended", r)
	s.assertClean()
}

// Two schedules with one key on two inventories, and two on one inventory, never
// overlap; a fire during a chain is skipped with its id.
func TestLongSchedulesNeverOverlap(t *testing.T) {
	t.Parallel()
	s := localSite(t)
	s.workspace("core", map[string]vars{"here": local})
	s.ok("workspace", "apply", "core", "--wait")
	first, second, third := s.gate("first"), s.gate("second"), s.gate("third")
	s.schedule("first", never, []string{"--concurrency-key", "fleet"}, first.line())
	s.schedule("second", never, nil, second.count())
	play := s.playbook("third", rawPlay("tf:core", third.count()))
	s.ok("schedule", "add", "third", "--cron", never, "--target", "tf:core", "--concurrency-key", "fleet", "--", play)

	one := strings.TrimSpace(s.ok("schedule", "run-now", "first").stdout)
	first.await(1)
	for _, name := range []string{"second", "third"} {
		r := s.ok("schedule", "run-now", name)
		s.holds(strings.Contains(r.stderr, "waiting: waits for "+one) && r.stdout == "", name+" waits for the first", r)
	}
	r := s.ok("schedule", "run-now", "second")
	s.holds(strings.Contains(r.stderr, "coalesced"), "a second fire of it is coalesced", r)
	s.crash() // who waits, waits on
	second.ran(0)
	third.ran(0)
	first.open()
	s.awaitJob(one)
	for _, name := range []string{"second", "third"} {
		job := s.awaitJob(string(s.awaitFire(name, started).Job))
		s.holds(job.State == orchestrator.JobSucceeded && !job.StartedAt.Before(s.job(one).FinishedAt), name+" ran after the first", job)
	}
	second.ran(1)
	third.ran(1)

	chain := s.gate("chain")
	run := s.submit("edge", s.playbook("chain", rawPlay("tf:edge", chain.line())))
	chain.await(1)
	s.fails(4, []string{"skipped", string(run)}, "schedule", "run-now", "second")
	chain.open()
	s.awaitRun(string(run))
	second.ran(1)
	s.assertClean()
}

// A schedule of applies, paused and resumed, and what is refused with the field.
func TestLongScheduleOfApplies(t *testing.T) {
	t.Parallel()
	s := localSite(t)
	r := s.ok("schedule", "add", "weekly", "--cron", "0 30 4 * * sun", "--kind", "apply", "--target", "tf:edge", "--timezone", "America/New_York")
	s.holds(strings.Count(r.stderr, "04:30:00 E") == 3, "add shows the next three fires in their zone", r)
	s.ok("schedule", "pause", "weekly")
	s.holds(len(jsonOf[[]orchestrator.ScheduleView](s, "schedule", "list")[0].Next) == 0, "a paused one has no next fire")
	s.ok("schedule", "resume", "weekly")
	s.writeHosts("edge", map[string]vars{"here": local, "there": local})
	s.ok("schedule", "run-now", "weekly", "--wait")
	s.holdsCaptured("edge", 1, 2)
	s.ok("schedule", "remove", "weekly")
	s.fails(2, []string{`no schedule "weekly"`, "exocomp schedule list"}, "schedule", "show", "weekly")

	for cron, says := range map[string]string{
		"0 3 * * *":     "the one for the second is missing",
		"TZ=0":          `begins with "TZ=0"`,
		"0 0 3 30 2 *":  `day of the month "30" never comes`,
		"@every 5m":     "@every is not taken",
		"0 61 3 * * *":  `field 2, the minute, is "61"`,
		"0 0 3 * * * *": "it has 7 field(s)",
	} {
		s.fails(2, []string{"--cron", says}, "schedule", "add", "bad", "--cron", cron, "--kind", "apply", "--target", "tf:edge")
	}
	play := s.playbook("x", rawPlay("tf:edge", "true"))
	s.fails(2, []string{"--timezone"}, "schedule", "add", "bad", "--cron", never, "--kind", "apply", "--target", "tf:edge", "--timezone", "Mars/Olympus")
	s.fails(2, []string{"--become"}, "schedule", "add", "bad", "--cron", never, "--target", "tf:edge", "--", play, "--become")
	s.fails(2, []string{"no playbook", "gone.yml"}, "schedule", "add", "bad", "--cron", never, "--target", "tf:edge", "--", filepath.Join(s.dir, "gone.yml"))
	s.holds(s.ok("schedule", "list").stdout == "", "nothing of it is there")
}
