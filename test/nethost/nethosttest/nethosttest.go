// Package nethosttest makes labs and hosts that end with a test.
package nethosttest

import (
	"testing"

	"github.com/exocomp/exocomp/test/nethost"
)

// Lab makes a lab that is closed when the test and its subtests end. A lab that
// cannot be made, or leaves something behind, fails the test: a machine without
// root or sshd must not pass for one on which everything works.
func Lab(t testing.TB) *nethost.Lab {
	t.Helper()
	l, err := nethost.New(t.Context())
	if err != nil {
		t.Fatalf("make lab: %v", err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("close lab: %v", err)
		}
	})
	return l
}

// Host makes a host that is closed when the test ends; when the test has failed
// by then, the log of its sshd is in the test's output.
func Host(t testing.TB, l *nethost.Lab, o nethost.HostOptions) *nethost.Host {
	t.Helper()
	h, err := l.Host(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("sshd of %s:\n%s", h.Name(), h.SSHDLog())
		}
		if err := h.Close(); err != nil {
			t.Errorf("close host %s: %v", h.Name(), err)
		}
	})
	return h
}
