//go:build long

package e2e

import (
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
