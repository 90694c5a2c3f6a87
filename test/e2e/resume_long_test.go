//go:build long

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/test/nethost"
)

// TestLongResumeAfterEachKindOfFailure: a chain over two hosts fails in each of
// its steps. Each resume goes on at the step that failed, and --failed-only deals
// in it only with the host that failed; the next step deals with both.
func TestLongResumeAfterEachKindOfFailure(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	s.start()
	web1, web2 := s.host("web1"), s.hostWith(nethost.HostOptions{Name: "web2", LateSSHD: true})
	cured := s.gate("cured")
	s.infra("edge", map[string]vars{"web1": hostVars(web1), "web2": hostVars(web2)},
		resource("breaks", fmt.Sprintf("%s; test -e %s.open", cured.count(), cured.path)))
	count := func(file, failing string) string {
		return fmt.Sprintf("echo x >>/root/%s; test {{ inventory_hostname }} != %s || test -e /root/%s.cured", file, failing, file)
	}
	onboard := s.playbook("onboard", rawPlay("all", count("onboarded", "web2")))
	site := s.playbook("site", rawPlay("tf:edge", count("played", "web1")))

	failsAt := func(r result, seq int) orchestrator.Step {
		t.Helper()
		run := s.run("edge")
		s.holds(r.code == 1 && run.FailedStep() != nil && run.FailedStep().Seq == seq, fmt.Sprintf("the chain fails in step %d", seq), r)
		return run.Steps[seq-1]
	}
	resume := func(flags ...string) result {
		t.Helper()
		return s.cli(append([]string{"provision", "resume", "edge", "--wait"}, flags...)...)
	}
	cure := func(h *nethost.Host, file string) {
		t.Helper()
		if err := h.WriteFile("/root/"+file+".cured", nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	counted := func(file string, on1, on2 int) {
		t.Helper()
		for h, want := range map[*nethost.Host]int{web1: on1, web2: on2} {
			if got := strings.Count(s.fileOn(h, "/root/"+file), "x"); got != want {
				t.Errorf("%s was %s %d time(s), want %d", h.Name(), file, got, want)
			}
		}
	}

	r, run := s.provision("edge", site, "--onboard-playbook", onboard, "--ssh-wait", "2s")
	failsAt(r, 1)
	s.fails(4, []string{"as a whole"}, "provision", "resume", "edge", "--failed-only")
	cured.open()
	failsAt(resume(), 2)
	cured.ran(2)

	if err := web2.StartSSHD(t.Context()); err != nil {
		t.Fatal(err)
	}
	r = resume("--failed-only", "--ssh-wait", "1m")
	wait := s.run("edge").Steps[1]
	s.holds(slices.Equal(wait.Only, []string{"web2"}) && hostReport(wait, "web1") == nil && hostReport(wait, "web2") != nil,
		"only the silent host is waited for", wait)
	failsAt(r, 3)
	counted("onboarded", 1, 1)

	cure(web2, "onboarded")
	r = resume("--failed-only")
	failsAt(r, 4)
	counted("onboarded", 1, 2)
	counted("played", 1, 1)

	cure(web1, "played")
	r = resume("--failed-only")
	s.holds(r.code == 0, "the chain succeeds", r)
	counted("onboarded", 1, 2)
	counted("played", 2, 1)
	s.wantAttempts(s.run("edge"), [4]int{2, 2, 2, 2}, [4]int{})
	s.holds(s.run("edge").ID == run.ID, "in one run")
	cured.ran(2)
}

// A standalone job that a crash cut short waits for a person, however often the
// daemon starts, and redrive runs it again.
func TestLongResumeOfAStandaloneJobIsARedrive(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	s.infra("edge", thisMachine())
	s.ok("workspace", "apply", "edge", "--wait")
	play := s.gate("play")
	id := strings.TrimSpace(s.ok("playbook", "run", s.playbook("site", rawPlay("tf:edge", play.line())), "--inventory", "tf:edge").stdout)
	play.await(1)
	s.crashEverything()
	interrupted := func() {
		t.Helper()
		j := s.job(id)
		s.holds(j.State == orchestrator.JobInterrupted && j.RedrivenBy == "" && strings.Contains(j.Failure.Hint, "exocomp jobs redrive "+id),
			"the job is interrupted and says what to type", j)
	}
	s.awaitJob(id)
	interrupted()
	s.crash()
	interrupted()
	play.ran(1)

	play.open()
	s.ok("jobs", "redrive", id, "--wait")
	play.ran(2)
	j := s.job(id)
	again := s.job(string(j.RedrivenBy))
	s.holds(again.Redrives == j.ID && again.State == orchestrator.JobSucceeded && again.Attempt.Number == 2, "redrive runs it once more", again)
	s.assertClean()
}
