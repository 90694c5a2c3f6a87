package e2e

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/test/nethost"
)

// needs is a shell line that fails, and says why, until a file is there.
func needs(file string) string {
	return "test -e " + file + " || { echo no " + filepath.Base(file) + " here; exit 1; }"
}

// TestGateProviderResume: a chain that fails in step 2, then 3, then 4 fails the
// apply each time, and each time applying again takes the same run up where it
// failed.
func TestGateProviderResume(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	web1 := s.hostWith(nethost.HostOptions{Name: "web1", LateSSHD: true})
	s.start()
	r := s.root("main")
	onboard, play, leave := s.hostGate(web1, "onboard"), s.hostGate(web1, "play"), s.hostGate(web1, "leave")
	site := s.playbook("site", rawPlay("tf:edge", play.count(), needs("/var/tmp/never")))
	r.provision(attrs{
		"workspace": "edge", "playbook": site, "inventory": map[string]vars{"web1": hostVars(web1)},
		"onboard_playbook": s.playbook("onboard", rawPlay("all", needs("/var/tmp/disk"), onboard.count())),
		"destroy_playbook": s.playbook("leave", rawPlay("all", leave.count())),
		"ssh_identities":   []string{s.lab.Key().Path}, "ssh_wait": "2s",
	})

	r.applyFails("failed at step 2, ssh-wait", "1 of 1 host(s)", "host web1: waiting", "exocomp provision logs run_")
	run := s.holdsRuns("edge", 1, "a host that never answers fails the apply and its run")
	if err := web1.StartSSHD(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.applyFails(string(run)+" of workspace edge failed at step 3, host-onboard", `task "Line 1"`, "host web1: failed", "Last lines:", "no disk here",
		"exocomp provision logs "+string(run))
	s.holds(onboard.runs() == 0, "the onboarding playbook that failed is step 3 of the same run")
	if err := web1.WriteFile("/var/tmp/disk", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.applyFails(string(run)+" of workspace edge failed at step 4, ansible-play", `task "Line 2"`, "host web1: failed", "Last lines:", "no never here",
		"exocomp provision logs "+string(run))
	onboard.ran(1)
	s.playbook("site", rawPlay("tf:edge", play.count()))
	r.apply()
	p, _ := r.state()
	s.holds(!p.Tainted && p.Values.Status == "succeeded" && p.Values.RunID == string(run), "the last apply ends the same run", p)
	s.holdsRuns("edge", 1, "all four applies made one run")
	s.wantAttempts(s.run(string(run)), [4]int{0, 2, 2, 2}, [4]int{})
	onboard.ran(1)
	play.ran(2)
	leave.ran(0)
	s.holds(len(s.leaves()) == 0, "no leave play was run", s.leaves())
	r.holdsEmpty("after it")
	s.assertClean()
}

// leaves returns the leave plays that there ever were, newest first.
func (s *site) leaves() []orchestrator.Job {
	s.t.Helper()
	return slices.DeleteFunc(jsonOf[[]orchestrator.Job](s, "jobs", "list"), func(j orchestrator.Job) bool {
		return j.Kind != orchestrator.JobLeavePlay
	})
}
