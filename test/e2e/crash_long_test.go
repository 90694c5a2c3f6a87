//go:build long

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

// One chain goes through every fault point: each kills the daemon, or the
// supervisor, once. The tools run as often as the points allow: again only
// where a supervisor died before it could say how its tool had ended. Whoever
// waits for the chain is served through all of it.
func TestLongCrashAtEveryFaultPoint(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	host := s.host("web1")
	faults := []string{
		"after-intent:init", "after-fork:plan", "after-result:plan", "after-intent:apply", "after-fork:apply", "after-tool-exit:apply",
		"before-publish:edge.json", "after-publish:edge.json",
		"before-pin-store", "before-publish:known_hosts", "after-publish:known_hosts",
		"after-intent:onboard", "after-fork:onboard", "after-result:onboard",
		"after-intent:verify-login", "after-fork:verify-login", "after-result:verify-login", "after-release:host-onboard",
		"after-intent:play", "after-fork:play", "after-tool-exit:play", "after-result:play", "after-release:ansible-play",
	}
	s.start() // publishes known_hosts for the first time without a fault
	apply, onboard, play := s.gate("apply"), s.hostGate(host, "onboard"), s.hostGate(host, "play")
	s.infra("edge", map[string]vars{"web1": hostVars(host)}, resource("counted", apply.count()))
	site := s.playbook("site", rawPlay("tf:edge", play.count()))
	onboarding := s.playbook("onboard", rawPlay("all", onboard.count()))
	s.stop()

	once := filepath.Join(s.dir, "once")
	if err := os.Mkdir(once, 0o700); err != nil {
		t.Fatal(err)
	}
	env := []string{"EXOCOMP_FAULT=" + strings.Join(faults, ","), "EXOCOMP_FAULT_ONCE=" + once}
	s.start(env...)
	client := s.spawn("provision", "run", "edge", site, "--onboard-playbook", onboarding, "--ssh-identity", s.lab.Key().Path, "--wait")
	for {
		select {
		case <-s.daemon.exited:
		case <-time.After(patience):
			t.Fatalf("not reached: %v", missing(t, once, faults))
		}
		if len(missing(t, once, faults)) == 0 {
			break
		}
		s.launch(env...)
	}
	s.start()
	if r := client.wait(); r.code != 0 {
		t.Errorf("the client that waited was not served: %s", r)
	}
	run := s.run("edge")
	if run.State != orchestrator.RunSucceeded {
		t.Fatalf("run is %s: %+v", run.State, run.FailedStep())
	}
	// after-tool-exit; before-pin-store and before-publish, which cut short
	// what the daemon does itself
	for kind, want := range map[orchestrator.StepKind]int{orchestrator.StepTofuApply: 1, orchestrator.StepHostOnboard: 2} {
		if got := step(run, kind).CrashAttempts; got != want {
			t.Errorf("step %s: %d crash attempts, want %d", kind, got, want)
		}
	}
	apply.ran(1)
	onboard.ran(1)
	play.ran(2)
	if len(s.pins()) != 1 {
		t.Errorf("pins: %v", s.pins())
	}
	s.assertClean()
}

// What a machine that restarts loses besides its processes is the runtime
// directory, saved plans and prepared plays in it. The daemon dies between two
// tools, and it is gone: the step begins again.
func TestLongCrashThatEmptiesTheRuntimeDirectory(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	apply, play := s.gate("apply"), s.gate("play")
	s.infra("edge", thisMachine(), resource("counted", apply.count()))
	site := s.playbook("site", rawPlay("tf:edge", play.count()))
	s.ok("drain")
	run := s.submit("edge", site)
	s.stop()
	faults := []string{"after-result:plan", "after-intent:apply", "after-intent:play"}
	once := filepath.Join(s.dir, "once")
	if err := os.Mkdir(once, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range faults {
		s.start("EXOCOMP_FAULT="+strings.Join(faults, ","), "EXOCOMP_FAULT_ONCE="+once)
		if i == 0 {
			s.cli("drain", "--off") // the daemon may die before it answers
		}
		select {
		case <-s.daemon.exited:
		case <-time.After(patience):
			t.Fatalf("not reached: %v", missing(t, once, faults))
		}
		if err := os.RemoveAll(s.runtime()); err != nil {
			t.Fatal(err)
		}
	}
	s.start()
	s.wantAttempts(s.awaitRun(string(run)), [4]int{3, 1, 1, 1}, [4]int{2, 0, 0, 0})
	apply.ran(1)
	play.ran(1)
	s.assertClean()
}

// A step that three crashes cut short needs a person. The supervisor dies, the
// daemon stays: it notices by itself.
func TestLongCrashThriceNeedsResume(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	play := s.gate("play")
	s.infra("edge", thisMachine())
	run := s.submit("edge", s.playbook("site", rawPlay("tf:edge", play.line())))
	for n := 1; n <= orchestrator.MaxCrashAttempts; n++ {
		play.await(n)
		s.supervised().Supervisor.kill(t)
	}
	failed := s.awaitRun(string(run))
	f := failed.FailedStep()
	if f == nil || f.Kind != orchestrator.StepAnsiblePlay || !strings.Contains(f.Failure.Message, "needs resume") ||
		!strings.Contains(f.Failure.Hint, "exocomp provision resume "+string(run)) {
		t.Fatalf("the run ended otherwise: %+v", f)
	}
	s.assertClean()

	play.open()
	s.ok("provision", "resume", string(run), "--wait")
	again := s.run(string(run))
	if got := step(again, orchestrator.StepAnsiblePlay); again.State != orchestrator.RunSucceeded || got.Attempts != 4 || got.CrashAttempts != 0 {
		t.Errorf("after resume: %s, %d attempts, %d crash attempts", again.State, got.Attempts, got.CrashAttempts)
	}
	play.ran(4)
	s.assertClean()
}
