package nethost_test

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exocomp/exocomp/test/nethost"
	"github.com/exocomp/exocomp/test/nethost/nethosttest"
)

func TestLateSSHDAndRotatedKeys(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	lab := nethosttest.Lab(t)
	h := nethosttest.Host(t, lab, nethost.HostOptions{Name: "late", LateSSHD: true})
	if _, err := net.Dial("tcp", h.HostPort()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("connect before sshd: %v, want refused", err)
	}
	if err := h.PauseSSHD(ctx); !errors.Is(err, nethost.ErrNoSSHD) {
		t.Errorf("pause before sshd: %v", err)
	}
	if err := h.StartSSHD(ctx); err != nil {
		t.Fatal(err)
	}
	mustLogin(t, lab, h, "true")

	before := h.PublicHostKey(nethost.ED25519)
	if err := h.RotateHostKeys(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := login(t, lab, h, []string{before}, "true"); err == nil || !strings.Contains(err.Error(), "REMOTE HOST IDENTIFICATION HAS CHANGED") {
		t.Errorf("log in with the old host key: %v", err)
	}
	if n := len(h.Logins()); n != 1 {
		t.Errorf("counted %d logins, want the one before the rotation", n)
	}
	mustLogin(t, lab, h, "true")

	if err := h.StopSSHD(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := net.Dial("tcp", h.HostPort()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("connect after sshd: %v, want refused", err)
	}
	if n := len(h.Logins()); n != 2 {
		t.Errorf("counted %d logins, want 2; log:\n%s", n, h.SSHDLog())
	}
}

// A host that is cut off is silent for longer than the kernel looks for a
// neighbour (three seconds); one without a host is not.
func TestSilence(t *testing.T) {
	t.Parallel()
	lab := nethosttest.Lab(t)
	h := nethosttest.Host(t, lab, nethost.HostOptions{Name: "silent"})
	vacant, err := lab.VacantAddr()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.LinkDown(t.Context()); err != nil {
		t.Fatal(err)
	}
	noRoute := make(chan error, 1)
	go func() {
		_, err := net.DialTimeout("tcp", net.JoinHostPort(vacant, "22"), 20*time.Second)
		noRoute <- err
	}()
	var timeout net.Error
	if _, err := net.DialTimeout("tcp", h.HostPort(), 5*time.Second); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("connect to a host that is cut off: %v, want a timeout", err)
	}
	if err := <-noRoute; !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("connect to a vacant address: %v, want no route to host", err)
	}
	if err := h.LinkUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustLogin(t, lab, h, "true")
}

// A mute host accepts and says nothing until it is resumed.
func TestMute(t *testing.T) {
	t.Parallel()
	lab := nethosttest.Lab(t)
	h := nethosttest.Host(t, lab, nethost.HostOptions{Name: "mute"})
	if err := h.PauseSSHD(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", h.HostPort())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	banner := make([]byte, 4)
	if err := c.SetReadDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(banner); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read from a mute host: %v, want a timeout", err)
	}
	if err := h.ResumeSSHD(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(banner); err != nil || string(banner) != "SSH-" {
		t.Errorf("read after the pause: %q, %v", banner, err)
	}
}

// The impostor answers at the host's address with another key and lets people
// in; who pins the key is not among them. Afterwards the host is back.
func TestMITM(t *testing.T) {
	t.Parallel()
	lab := nethosttest.Lab(t)
	h := nethosttest.Host(t, lab, nethost.HostOptions{Name: "web1", User: "admin"})
	m, err := lab.MITM(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := login(t, lab, h, []string{h.PublicHostKey(nethost.ED25519)}, "true"); err == nil || !strings.Contains(err.Error(), "REMOTE HOST IDENTIFICATION HAS CHANGED") {
		t.Errorf("log in with the pinned key: %v", err)
	}
	if n := len(m.Logins()); n != 0 {
		t.Errorf("%d logins fell for the impostor", n)
	}
	mustLogin(t, lab, m, "sudo -n touch /pushed")
	if len(m.Logins()) != 1 || len(h.Logins()) != 0 || !exists(t, m, "/pushed") || exists(t, h, "/pushed") {
		t.Error("who trusts the impostor does not reach it")
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	mustLogin(t, lab, h, "true")
}

func TestLateProxy(t *testing.T) {
	t.Parallel()
	lab := nethosttest.Lab(t)
	h := nethosttest.Host(t, lab, nethost.HostOptions{Name: "behind", LateSSHD: true})
	vacant, err := lab.VacantAddr()
	if err != nil {
		t.Fatal(err)
	}
	for _, listen := range []string{net.JoinHostPort(lab.Gateway(), "2222"), net.JoinHostPort(vacant, "22")} {
		p, err := lab.Proxy(t.Context(), listen, h.HostPort())
		if err != nil {
			t.Fatal(err)
		}
		if err := h.StopSSHD(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := banner(p.Addr()); err == nil {
			t.Errorf("the proxy to a host without sshd said %q", got)
		}
		if err := h.StartSSHD(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := banner(p.Addr()); err != nil || got != "SSH-" {
			t.Errorf("the proxy said %q, %v", got, err)
		}
		if n := p.Accepted(); n != 2 {
			t.Errorf("the proxy accepted %d connections, want 2", n)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := banner(p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("connect after the proxy: %v, want refused", err)
		}
	}
}

// banner returns the first four bytes that a server says.
func banner(address string) (string, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return "", err
	}
	defer c.Close()
	b := make([]byte, 4)
	n, err := c.Read(b)
	return string(b[:n]), err
}
