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

// A play that failed on some of its hosts is resumed on those alone; another run
// takes over what was done before the play, and plays on all. Nothing is applied
// again.
func TestLongResumeOfSomeHostsAndFromAStep(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	applies, played := s.gate("apply"), s.visits("play")
	s.infra("edge", localHosts("a", "b", "c"), resource("count", applies.count()))
	cured := s.dir + "/cured"
	site := s.playbook("site", rawPlay("tf:edge", played.line(), "test {{ inventory_hostname }} = a || test -e "+cured))

	r, run := s.provision("edge", site)
	s.holds(r.code == 1 && run.Steps[3].State == orchestrator.StepFailed, "the play fails on some hosts", r)
	played.since("the play comes to all hosts", "a", "b", "c")

	s.writeFile("cured", "")
	s.ok("provision", "resume", "edge", "--failed-only", "--wait")
	played.since("--failed-only plays on the failed hosts alone", "b", "c")
	done := s.run("edge")
	s.holds(done.ID == run.ID && done.State == orchestrator.RunSucceeded && slices.Equal(done.Steps[3].Only, []string{"b", "c"}),
		"the same run goes on and says for whom", done.Steps[3])
	s.holds(strings.Contains(s.ok("provision", "status", "edge").stdout, "(2 host(s) only)"), "status says so")

	s.fails(2, []string{"no step", "ssh-wait"}, "provision", "resume", "edge", "--from", "lunch")
	s.ok("provision", "resume", "edge", "--from", "ansible-play", "--wait")
	played.since("the new run plays on all hosts", "a", "b", "c")
	next := s.run("edge")
	s.holds(next.ID != run.ID && next.State == orchestrator.RunSucceeded && next.Inventory == run.Inventory, "--from begins another run", next)
	for i, st := range next.Steps {
		taken := i < 3
		s.holds((st.TakenFrom == run.ID) == taken && (st.Attempts == 0) == taken, fmt.Sprintf("step %d is of the right run", i+1), st)
	}
	s.holds(next.Steps[0].Report != nil && next.Steps[0].Report.Summary == run.Steps[0].Report.Summary, "with what it reported", next.Steps[0])
	s.holds(strings.Contains(s.ok("provision", "status", "edge").stdout, "(of "+string(run.ID)+")"), "status names the other run")
	s.holds(slices.Equal(states(s.run(string(run.ID))), allSucceeded), "which stays as it was")
	applies.ran(1)
	s.fails(4, []string{string(next.ID)}, "provision", "resume", string(run.ID), "--from", "ansible-play")
}
