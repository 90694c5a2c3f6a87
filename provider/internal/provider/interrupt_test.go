package provider

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// signal sends sig to tofu alone and waits for it to end.
func signal(t *testing.T, cmd *exec.Cmd, sig syscall.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

func TestAnInterruptedCreateIsFollowedByAnUpdate(t *testing.T) {
	t.Parallel()
	s := newSite(t, edge())
	s.hold(true)
	cmd, out := s.start()
	s.running(1)
	signal(t, cmd, syscall.SIGINT)
	s.exit(cmd.Wait())
	s.says(flat(out.String()), "Warning: Interrupted; run "+digits(1)+" goes on", "exocomp provision status "+digits(1))

	plan := s.plan(true)
	s.says(plan, "will be updated in-place")
	s.hold(false)
	s.apply()
	s.plan(false)
	s.runs(1)
	if a := s.daemon.asked; len(a) != 2 || a[0].Owner != a[1].Owner {
		t.Errorf("the resource has another token after the interrupt")
	}
}

func TestTwiceInterruptedOrKilledTheNextApplyFollows(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *site, *exec.Cmd){
		"twice": func(t *testing.T, s *site, cmd *exec.Cmd) {
			signal(t, cmd, syscall.SIGINT)
			s.daemon.until(t, "the provider hangs up", func() bool { return s.daemon.gone > 0 })
			_ = cmd.Process.Signal(syscall.SIGINT)
		},
		"killed": func(t *testing.T, s *site, cmd *exec.Cmd) {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the provider too
			s.daemon.until(t, "the daemon notices", func() bool { return s.daemon.gone > 0 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, edge())
			s.process = true
			s.hold(true)
			cmd, _ := s.start()
			s.running(1)
			end(t, s, cmd)
			_ = cmd.Wait()
			s.hold(false)
			s.apply()
			s.plan(false)
			s.runs(1)
		})
	}
}

func TestAnInterruptedUpdateIsFollowed(t *testing.T) {
	t.Parallel()
	s := newSite(t, edge())
	s.apply()
	s.write("play/site.yml", "- hosts: all # changed\n")
	s.hold(true)
	cmd, out := s.start()
	s.running(2)
	signal(t, cmd, syscall.SIGINT)
	s.exit(cmd.Wait())
	s.says(flat(out.String()), "Interrupted; run "+digits(2)+" goes on")
	s.hold(false)
	s.apply()
	s.plan(false)
	s.runs(1, 1)
}

// TestAnInterruptWhileAnotherRunStandsInTheWayKeepsTheChange holds that the
// state never takes a run for its own that does something else.
func TestAnInterruptWhileAnotherRunStandsInTheWayKeepsTheChange(t *testing.T) {
	t.Parallel()
	s := newSite(t, edge())
	s.apply()
	s.write("play/site.yml", "- hosts: all # changed\n")
	s.daemon.set(func() { s.daemon.waits = true })
	cmd, out := s.start()
	s.running(2)
	signal(t, cmd, syscall.SIGINT)
	s.exit(cmd.Wait())
	s.says(flat(out.String()), "Interrupted before there was a run", "Run "+digits(1)+" must end first")
	s.says(s.plan(true), "will be updated in-place", `status = "pending"`)
	s.daemon.set(func() { s.daemon.waits = false })
	s.apply()
	s.plan(false)
	s.runs(1, 1)
}

func TestPreventDestroyIsAnsweredByUntaint(t *testing.T) {
	t.Parallel()
	s := newSite(t, edge("lifecycle { prevent_destroy = true }"))
	s.daemon.set(func() { s.daemon.failAt = "ssh-wait" })
	s.fails(applyArgs, "tofu untaint ADDRESS", "with "+address)
	s.daemon.set(func() { s.daemon.failAt = "" })
	s.fails(applyArgs, "prevent_destroy")
	if code, out := s.tofu("untaint", address); code != 0 {
		t.Fatal(out)
	}
	s.apply()
	s.plan(false)
	s.runs(2)
}

func TestADeferredRunIsAWarning(t *testing.T) {
	t.Parallel()
	s := newSite(t, edge())
	s.process = true
	s.env = append(s.env, attemptEnv+"=attempt-token")
	s.daemon.set(func() { s.daemon.deferred, s.daemon.held = true, true })
	s.says(s.apply(), "Warning: Run "+digits(1)+" goes on after this apply", "exocomp provision status "+digits(1))
	if got := s.daemon.lastAsked().Attempt.Reveal(); got != "attempt-token" {
		t.Errorf("asked with the attempt %q", got)
	}
	s.says(s.plan(true), "will be updated in-place")
	s.daemon.set(func() { s.daemon.finish(s.daemon.runs[0]) })
	s.plan(false) // its own run has succeeded meanwhile
}

// TestDestroyingWhatWasNeverProvisionedReleasesIt holds that a tainted resource
// that is destroyed, and not replaced, tells the daemon.
func TestDestroyingWhatWasNeverProvisionedReleasesIt(t *testing.T) {
	t.Parallel()
	s := newSite(t, edge())
	s.daemon.set(func() { s.daemon.failAt = "ssh-wait" })
	s.fails(applyArgs, "step 2, ssh-wait")
	code, out := s.tofu("destroy", "-auto-approve", "-no-color")
	if code != 0 || strings.Contains(out, "Warning: Workspace") || len(s.daemon.ends) != 1 {
		t.Errorf("exit code %d, ended %d times\n%s", code, len(s.daemon.ends), out)
	}
}
