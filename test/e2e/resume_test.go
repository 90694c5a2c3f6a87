package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// localHosts is an inventory of local hosts of these names.
func localHosts(names ...string) map[string]vars {
	hosts := map[string]vars{}
	for _, n := range names {
		hosts[n] = thisMachine()["here"]
	}
	return hosts
}

// visits is a file to which each host of a play writes its name.
type visits struct {
	s    *site
	path string
	seen int
}

func (s *site) visits(name string) *visits {
	return &visits{s: s, path: s.writeFile(name+".visits", "")}
}

func (v *visits) line() string { return "echo {{ inventory_hostname }} >> " + v.path }

// since fails the test unless exactly these hosts were visited since the last
// call, each once.
func (v *visits) since(what string, want ...string) {
	v.s.t.Helper()
	all := strings.Fields(v.s.read(v.path))
	got := slices.Sorted(slices.Values(all[v.seen:]))
	v.seen = len(all)
	v.s.holds(slices.Equal(got, want), what, got)
}

// A play that failed on some of its hosts is resumed on those alone; another run
// takes over what was done before the play, and plays on all. Nothing is applied
// again.
func TestResumeOfSomeHostsAndFromAStep(t *testing.T) {
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
