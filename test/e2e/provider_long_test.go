//go:build long

package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// sweep runs a gate's body for moments all along an apply, each with a resource,
// a workspace and a count of its own.
func (s *site) sweep(body func(r *root, name string, after time.Duration)) {
	s.t.Helper()
	const step = 150 * time.Millisecond
	for i := range 24 {
		name := fmt.Sprintf("edge%d", i)
		r := s.root(name)
		play := s.gate(name)
		r.provision(attrs{"workspace": name, "playbook": s.playbook(name, rawPlay("all", play.count())), "inventory": thisMachine()})
		body(r, name, time.Duration(i)*step)
		s.holdsRuns(name, 1, fmt.Sprintf("one run, cut into after %s", time.Duration(i)*step))
		play.ran(1)
		r.holdsEmpty("after it")
	}
}

// TestLongProviderKilled: tofu and its provider die by SIGKILL at any moment of an
// apply. The next one ends the same run; only where the daemon had told of the
// success, and tofu had not yet written it, does a person have to say whose the
// workspace is.
func TestLongProviderKilled(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	s.sweep(func(r *root, name string, after time.Duration) {
		c := r.spawnApply()
		select {
		case <-time.After(after):
		case <-c.ended:
			c = r.spawnApply() // it was quicker
		}
		c.signal(syscall.SIGKILL)
		c.wait()
		out := r.do("apply", "-auto-approve", "-input=false")
		if out.code != 0 && strings.Contains(unboxed(out.stderr), "tofu import ADDRESS "+name) {
			t.Logf("killed after %s, between the answer and the state", after)
			r.ok("import", address, name)
			out = r.do("apply", "-auto-approve", "-input=false")
		}
		if out.code != 0 {
			t.Fatalf("killed after %s, the next apply: %s", after, out)
		}
	})
	s.assertClean()
}

// TestLongProviderDaemonKilled: the daemon dies by SIGKILL at any moment of an
// apply and is there again at once. The apply is served through it, or fails
// without a run and is served the next time.
func TestLongProviderDaemonKilled(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	s.sweep(func(r *root, _ string, after time.Duration) {
		c := r.spawnApply()
		time.Sleep(after)
		s.crash()
		if out := c.wait(); out.code != 0 {
			t.Logf("killed after %s, the apply: %s", after, out)
			r.apply()
		}
	})
	s.assertClean()
}
