package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

// never is a cron expression whose next instant lies years away: such a schedule
// fires when a person asks.
const never = "0 0 3 29 2 *"

// localSite is a site whose workspace edge names this machine.
func localSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.start()
	s.workspace("edge", map[string]vars{"here": local})
	s.ok("workspace", "apply", "edge", "--wait")
	return s
}

// schedule adds one that plays lines against edge.
func (s *site) schedule(name, cron string, flags []string, lines ...string) (playbook string) {
	s.t.Helper()
	playbook = s.playbook(name, rawPlay("tf:edge", lines...))
	s.ok(slices.Concat([]string{"schedule", "add", name, "--cron", cron, "--kind", "play", "--target", "tf:edge"}, flags, []string{"--", playbook})...)
	return playbook
}

func (s *site) fires(schedule string) []orchestrator.Fire {
	s.t.Helper()
	return jsonOf[orchestrator.ScheduleView](s, "schedule", "show", schedule, "--limit", "0").Fires
}

// awaitFire waits until a schedule has a fire that fits and returns it.
func (s *site) awaitFire(schedule string, fits func(orchestrator.Fire) bool) (f orchestrator.Fire) {
	s.t.Helper()
	s.awaitEvent("a fire of "+schedule, func(e orchestrator.Event) bool {
		if !strings.HasPrefix(string(e.Kind), "fire.") || !strings.Contains(e.Message, "schedule "+schedule+",") {
			return false
		}
		fires := s.fires(schedule)
		i := slices.IndexFunc(fires, fits)
		if i >= 0 {
			f = fires[i]
		}
		return i >= 0
	})
	return f
}

func started(f orchestrator.Fire) bool { return f.State == orchestrator.FireStarted }

// scheduleSoon adds a schedule that plays a line against edge in some seconds, and
// then not for a day. It returns the instant.
func (s *site) scheduleSoon(name, line string) time.Time {
	s.t.Helper()
	play := s.playbook(name, rawPlay("tf:edge", line))
	for { // again where this machine took longer than that
		at := time.Now().UTC().Truncate(time.Second).Add(6 * time.Second)
		cron := fmt.Sprintf("%d %d %d * * *", at.Second(), at.Minute(), at.Hour())
		r := s.ok("schedule", "add", name, "--cron", cron, "--timezone", "UTC", "--target", "tf:edge", "--json", "--", play)
		var v orchestrator.ScheduleView
		if err := json.Unmarshal([]byte(r.stdout), &v); err != nil {
			s.t.Fatal(err)
		}
		if v.Next[0].Equal(at) {
			return at
		}
	}
}

// The daemon dies by SIGKILL at every point around a fire; one job is started.
func TestAFireSurvivesTheDaemon(t *testing.T) {
	t.Parallel()
	s := localSite(t)
	s.survivesFires("fire-due:", "fire-recorded:", "fire-prepared:", "fire-started:")
}

// survivesFires kills the daemon at each of the points while a schedule fires; a
// point that ends in a colon is completed by the schedule's name.
func (s *site) survivesFires(points ...string) {
	s.t.Helper()
	for i, point := range points {
		name := fmt.Sprintf("nightly%d", i)
		if strings.HasSuffix(point, ":") {
			point += name
		}
		s.stop()
		s.start("EXOCOMP_FAULT="+point, "EXOCOMP_FAULT_ONCE="+filepath.Join(s.dir, name+".once"))
		g := s.gate(name)
		at := s.scheduleSoon(name, g.count())
		<-s.daemon.exited
		s.start()
		f := s.awaitFire(name, started)
		job := s.awaitJob(string(f.Job))
		s.holds(f.At.Equal(at) && job.State == orchestrator.JobSucceeded, "killed at "+point+", the daemon starts the instant's job, which succeeds", f, job)
		g.ran(1)
		s.holds(len(s.fires(name)) == 1, "killed at "+point+", there is one fire", s.fires(name))
	}
	s.assertClean()
}

// What cannot be played against queues nothing and says why, in the event, the
// list and to who asks.
func TestAFireFailsClosed(t *testing.T) {
	t.Parallel()
	s := localSite(t)
	g := s.gate("ran")
	playbook := s.schedule("nightly", never, nil, g.count())
	file := filepath.Join(s.data(), "artifacts", "inventory", "edge.json")
	published := s.read(file)
	jobs := len(jsonOf[[]orchestrator.Job](s, "jobs", "list", "--limit", "0"))

	refused := func(says string) {
		t.Helper()
		r := s.fails(4, []string{"nothing was started: refused", says}, "schedule", "run-now", "nightly")
		f := s.fires("nightly")[0]
		s.holds(f.State == orchestrator.FireRefused && strings.Contains(f.Reason, says) && f.Job == "", "the fire is refused: "+says, f, r)
		list := s.ok("schedule", "list").stdout
		s.holds(strings.Contains(list, "refused: ") && strings.Contains(list, says), "schedule list says why", list)
		s.holds(slices.ContainsFunc(s.events(), func(e orchestrator.Event) bool {
			return e.Kind == orchestrator.EventFireRefused && e.Warning && strings.Contains(e.Message, "schedule nightly") && strings.Contains(e.Message, says)
		}), "an event says why", s.events())
		s.holds(len(jsonOf[[]orchestrator.Job](s, "jobs", "list", "--limit", "0")) == jobs, "nothing is queued")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	refused("lost its file")
	s.writeFile("data/artifacts/inventory/edge.json", strings.Replace(published, "here", "gone", 1))
	refused("differs from the ledger")
	s.writeFile("data/artifacts/inventory/edge.json", published)
	if err := os.Rename(playbook, playbook+".away"); err != nil {
		t.Fatal(err)
	}
	refused("no playbook " + playbook)
	if err := os.Rename(playbook+".away", playbook); err != nil {
		t.Fatal(err)
	}
	s.writeHosts("edge", map[string]vars{})
	s.ok("workspace", "apply", "edge", "--wait")
	jobs++
	refused("names no hosts")
	s.ok("workspace", "remove", "edge")
	refused(`no workspace "edge"`)
	s.workspace("edge", map[string]vars{"here": local})
	refused("never captured")
	g.ran(0)

	s.ok("workspace", "apply", "edge", "--wait")
	s.ok("schedule", "run-now", "nightly", "--wait")
	g.ran(1)
	s.convergesNobody()
}

// convergesNobody: a fire whose play reaches no host fails, and the reason stands
// in the list, the job and the event.
func (s *site) convergesNobody() {
	s.t.Helper()
	g := s.gate("nobody")
	for name, c := range map[string]struct {
		pattern, says string
		args          []string
	}{
		"typo":      {pattern: "tf:egde", says: "tf:egde"},
		"elsewhere": {pattern: "tf:edge", args: []string{"--limit", "elsewhere"}, says: "elsewhere"},
	} {
		play := s.playbook(name, rawPlay(c.pattern, g.count()))
		s.ok(append([]string{"schedule", "add", name, "--cron", never, "--target", "tf:edge", "--", play}, c.args...)...)
		s.fails(1, nil, "schedule", "run-now", name, "--wait")
		f := s.fires(name)[0]
		s.holds(started(f) && f.JobState == orchestrator.JobFailed && strings.HasPrefix(f.JobFailure, "converged nobody: ") && strings.Contains(f.JobFailure, c.says),
			name+" says why it converged nobody", f)
		list := s.ok("schedule", "list").stdout
		s.holds(strings.Contains(list, string(f.Job)+" failed: "+f.JobFailure), "schedule list says why", list)
		shown := s.ok("jobs", "show", string(f.Job)).stdout
		s.holds(strings.Contains(shown, f.JobFailure), "jobs show says why", shown)
		s.holds(slices.ContainsFunc(s.events(), func(e orchestrator.Event) bool {
			return e.Kind == orchestrator.EventJobFinished && e.Job == f.Job && strings.Contains(e.Message, f.JobFailure)
		}), "an event says why", s.events())
	}
	g.ran(0)
}
