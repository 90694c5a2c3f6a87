package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/test/nethost"
)

// stoppingChain is a chain over one host that stops in each of its tools:
// while tofu creates, in the onboarding play and in the configure play. The
// host's sshd is off, so it stops in the SSH wait, too.
type stoppingChain struct {
	host                 *nethost.Host
	apply, onboard, play gate
	run                  orchestrator.RunID
}

func (s *site) stoppingChain(resources func(gate) string) *stoppingChain {
	s.t.Helper()
	c := &stoppingChain{host: s.hostWith(nethost.HostOptions{Name: "web1", LateSSHD: true}), apply: s.gate("apply")}
	c.onboard, c.play = s.hostGate(c.host, "onboard"), s.hostGate(c.host, "play")
	s.infra("edge", map[string]vars{"web1": hostVars(c.host)}, resources(c.apply))
	c.run = s.submit("edge", s.playbook("site", rawPlay("tf:edge", c.play.line())),
		"--onboard-playbook", s.playbook("onboard", rawPlay("all", c.onboard.line())))
	return c
}

// awaitStep waits until a step of the run has been started n times.
func (s *site) awaitStep(run orchestrator.RunID, kind orchestrator.StepKind, n int) {
	s.t.Helper()
	s.awaitNth(run, orchestrator.EventStepStarted, kind, n)
}

// awaitAdopted waits until daemons have adopted tools of a run's step n times.
func (s *site) awaitAdopted(run orchestrator.RunID, kind orchestrator.StepKind, n int) {
	s.t.Helper()
	s.awaitNth(run, orchestrator.EventJobAdopted, kind, n)
}

// awaitNth waits for the nth event of a kind about a step of the run.
func (s *site) awaitNth(run orchestrator.RunID, event orchestrator.EventKind, kind orchestrator.StepKind, n int) {
	s.t.Helper()
	seen := 0
	s.awaitEvent(fmt.Sprintf("%s of %s, %d times", event, kind, n), func(e orchestrator.Event) bool {
		if e.Kind == event && e.Step == kind {
			seen++
		}
		return seen == n
	}, "--run", string(run))
}

func step(run orchestrator.Run, kind orchestrator.StepKind) orchestrator.Step {
	i := slices.IndexFunc(run.Steps, func(s orchestrator.Step) bool { return s.Kind == kind })
	return run.Steps[i]
}

// wantAttempts fails the test unless the run succeeded with these attempts, and
// crash attempts, of its steps.
func (s *site) wantAttempts(run orchestrator.Run, attempts, crashes [4]int) {
	s.t.Helper()
	if run.State != orchestrator.RunSucceeded {
		s.t.Fatalf("run is %s: %+v", run.State, run.FailedStep())
	}
	for i, st := range run.Steps {
		if st.Attempts != attempts[i] || st.CrashAttempts != crashes[i] {
			s.t.Errorf("step %s: %d attempts, %d cut short by a crash, want %d and %d",
				st.Kind, st.Attempts, st.CrashAttempts, attempts[i], crashes[i])
		}
	}
}

// The daemon dies by SIGKILL in each of the four steps. Every tool goes on
// meanwhile and is adopted; only the SSH wait, the daemon's own work, begins
// again.
func TestCrashOfTheDaemonIsSurvived(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	s.start()
	c := s.stoppingChain(func(g gate) string { return resource("slow", g.line()) })

	c.apply.await(1)
	s.crash()
	s.awaitAdopted(c.run, orchestrator.StepTofuApply, 1)
	s.crash() // once more: an adopted tool is adopted again
	s.awaitAdopted(c.run, orchestrator.StepTofuApply, 2)
	c.apply.open()

	s.awaitStep(c.run, orchestrator.StepSSHWait, 1)
	s.crash()
	s.awaitStep(c.run, orchestrator.StepSSHWait, 2)
	if err := c.host.StartSSHD(t.Context()); err != nil {
		t.Fatal(err)
	}

	c.onboard.await(1)
	s.crash()
	s.awaitAdopted(c.run, orchestrator.StepHostOnboard, 1)
	c.onboard.open()

	// this time the play ends while no daemon is there
	c.play.await(1)
	running := s.supervised()
	s.daemon.kill()
	c.play.open()
	s.await("the end of the supervisor", func() bool { return !running.Supervisor.alive() })
	s.start()

	s.wantAttempts(s.awaitRun(string(c.run)), [4]int{1, 2, 1, 1}, [4]int{0, 1, 0, 0})
	c.apply.ran(1)
	c.onboard.ran(1)
	c.play.ran(1)
	s.assertClean()
}

// Daemon, supervisor and tool die together. Steps 3 and 4 are run again, and so
// is step 1, where the journal shows no create that the state lacks.
func TestCrashOfEverythingIsRearmed(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	s.start()
	s.infra("edge", nil, leaving("old", "true", 1))
	s.ok("workspace", "apply", "edge", "--wait")
	c := s.stoppingChain(func(g gate) string { return leaving("old", g.line(), 0) })

	c.apply.await(1)
	s.crashEverything()
	c.apply.await(2)
	c.apply.open()

	s.awaitStep(c.run, orchestrator.StepSSHWait, 1)
	if err := c.host.StartSSHD(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.onboard.await(1)
	s.crashEverything()
	c.onboard.await(2)
	c.onboard.open()

	c.play.await(1)
	s.crashEverything()
	c.play.await(2)
	c.play.open()

	s.wantAttempts(s.awaitRun(string(c.run)), [4]int{2, 1, 2, 2}, [4]int{1, 0, 1, 1})
	c.apply.ran(2)
	c.onboard.ran(2)
	c.play.ran(2)
	s.assertClean()
}

// missing returns the faults that did not happen.
func missing(t *testing.T, once string, faults []string) []string {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(faults), func(f string) bool {
		_, err := os.Stat(filepath.Join(once, f))
		return err == nil
	})
}
