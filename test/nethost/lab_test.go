package nethost_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/exocomp/exocomp/test/nethost"
	"github.com/exocomp/exocomp/test/nethost/nethosttest"
)

// Close ends what runs on the hosts, open sessions and plays' daemons included,
// and leaves nothing.
func TestCloseLeavesNothing(t *testing.T) {
	t.Parallel()
	lab := nethosttest.Lab(t)
	h := nethosttest.Host(t, lab, nethost.HostOptions{Name: "web1"})
	if _, err := h.Exec(t.Context(), "sh", "-c", "setsid sleep 600 </dev/null >/dev/null 2>&1 &"); err != nil {
		t.Fatal(err)
	}
	session := exec.Command("ssh", "-F", "none", "-i", lab.Key().Path, "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no",
		"-o", "UserKnownHostsFile=/dev/null", "root@"+h.Addr(), "echo open; exec sleep 600")
	stdout, err := session.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { // it is cut off and learns nothing, so it is ours to end
		_ = session.Process.Kill()
		_ = session.Wait()
	}()
	if !bufio.NewScanner(stdout).Scan() {
		t.Fatal("no session")
	}
	tr := observe(t, lab.Dir())
	if len(tr.procs) < 5 { // init, sshd, its session's, two sleeps
		t.Errorf("found %d processes of the lab only", len(tr.procs))
	}

	if err := lab.Close(); err != nil {
		t.Fatal(err)
	}
	for _, what := range tr.left(t) {
		t.Error("left: ", what)
	}
	if err := lab.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
	if _, err := lab.Host(t.Context(), nethost.HostOptions{Name: "web2"}); err == nil {
		t.Error("a closed lab made a host")
	}
}

// Wherever the making of a host is cut short, no process stays, and the lab can
// make the next one.
func TestHostCutShort(t *testing.T) {
	t.Parallel()
	lab := nethosttest.Lab(t)
	for _, after := range []time.Duration{time.Millisecond, 30 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		h, err := lab.Host(ctx, nethost.HostOptions{Name: "hasty"})
		cancel()
		if err == nil { // a fast machine
			err = h.Close()
			if err != nil {
				t.Fatal(err)
			}
		}
		if pids := processes(t, lab.Dir()); len(pids) > 0 {
			t.Errorf("processes after a set-up cut short at %s: %v", after, pids)
		}
	}
	if _, err := lab.Host(t.Context(), nethost.HostOptions{Name: "Not a name"}); err == nil {
		t.Error("a host with an impossible name came up")
	}
	h := nethosttest.Host(t, lab, nethost.HostOptions{Name: "patient"})
	mustLogin(t, lab, h, "true")
	tr := observe(t, lab.Dir())
	if err := lab.Close(); err != nil {
		t.Fatal(err)
	}
	for _, what := range tr.left(t) {
		t.Error("left: ", what)
	}
}

// The hosts of a process that was killed end with it, and the next lab of
// anybody removes the rest; a lab that lives is left alone.
func TestSweepAfterKill(t *testing.T) {
	t.Parallel()
	holder := exec.Command("/proc/self/exe")
	holder.Env = append(os.Environ(), holdVariable+"=1")
	holder.Stderr = os.Stderr
	stdout, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = holder.Process.Kill() // the second time, as a rule
		_ = holder.Wait()
	}()
	var dir, address string
	if _, err := fmt.Fscan(stdout, &dir, &address); err != nil {
		t.Fatalf("read what the process holds: %v", err)
	}
	tr := observe(t, dir)

	nethosttest.Lab(t)
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatalf("connect to the host of a lab that lives, after a sweep: %v", err)
	}
	c.Close()

	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, p := range tr.procs {
		if !ended(p, 10*time.Second) {
			t.Fatalf("process %s outlives the one that made the lab", p.Name())
		}
	}
	// Another process may have claimed the dead lab first and be at work on it.
	deadline := time.Now().Add(10 * time.Second)
	for {
		nethosttest.Lab(t)
		left := tr.left(t)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left: %v", left)
		}
	}
}
