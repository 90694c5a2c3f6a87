package sshwait_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator/internal/steps/sshwait"
	"github.com/exocomp/exocomp/seeds"
	"github.com/google/go-cmp/cmp"
)

// TestSeededPlayGivesTheSameVerdicts runs wait-ssh.yml, which people use by
// hand, and the native wait against the same peers.
func TestSeededPlayGivesTheSameVerdicts(t *testing.T) {
	const bound = 4 * time.Second
	peers := map[string]func(net.Conn){
		"answers": func(c net.Conn) { _, _ = c.Write([]byte("SSH-2.0-test\r\n")) },
		"prefaced": func(c net.Conn) {
			_, _ = c.Write([]byte("welcome\r\nSSH-2.0-test\r\n"))
		},
		"silent": func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, // until the other side gives up
		"closes": func(net.Conn) {},
		"web":    func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.0 400 Bad Request\r\n\r\n")) },
	}
	ports := map[string]int{"refuses": closedPort(t)}
	for name, serve := range peers {
		ports[name] = listen(t, serve)
	}

	var targets []sshwait.Target
	for name, port := range ports {
		targets = append(targets, sshwait.Target{Name: name, Host: "127.0.0.1", Port: port})
	}
	native := map[string]bool{}
	for _, r := range sshwait.Wait(t.Context(), targets, sshwait.Options{Deadline: time.Now().Add(bound)}) {
		native[r.Name] = r.Ready
	}
	if diff := cmp.Diff(played(t, ports, bound), native); diff != "" {
		t.Errorf("verdicts differ (-wait-ssh.yml +native):\n%s", diff)
	}
}

func listen(t *testing.T, serve func(net.Conn)) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(func() {
		_ = ln.Close()
		running.Wait()
	})
	running.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer func() { _ = c.Close() }()
				serve(c)
			})
		}
	})
	return ln.Addr().(*net.TCPAddr).Port
}

func closedPort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().(*net.TCPAddr).Port
}

// recapLine is a host's line in the recap of ansible-playbook.
var recapLine = regexp.MustCompile(`(?m)^(\w+)\s+: .* failed=(\d+)`)

// played runs the seeded play and returns which hosts it found ready.
func played(t *testing.T, ports map[string]int, bound time.Duration) map[string]bool {
	t.Helper()
	dir := t.TempDir()
	hosts := map[string]any{}
	for name, port := range ports {
		hosts[name] = map[string]any{"ansible_host": "127.0.0.1", "ansible_port": port}
	}
	inventory, err := json.Marshal(map[string]any{"all": map[string]any{"hosts": hosts}})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"hosts.json": inventory, seeds.WaitSSH: seeds.Read(seeds.WaitSSH), "ansible.cfg": nil} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "ansible-playbook", "-i", "hosts.json", "-f", "20",
		"-e", fmt.Sprintf("exocomp_ssh_wait=%d", int(bound.Seconds())), seeds.WaitSSH)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "ANSIBLE_NOCOLOR=1", "ANSIBLE_CONFIG="+filepath.Join(dir, "ansible.cfg"),
		"ANSIBLE_LOCAL_TEMP="+dir, "ANSIBLE_REMOTE_TEMP="+dir, "ANSIBLE_PYTHON_INTERPRETER=/usr/bin/python3")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output() // exit code 2 where a host is not ready
	verdicts := map[string]bool{}
	for _, m := range recapLine.FindAllSubmatch(out, -1) {
		verdicts[string(m[1])] = string(m[2]) == "0"
	}
	if len(verdicts) != len(ports) {
		t.Fatalf("ansible-playbook: %v: %s%s", err, out, stderr.String())
	}
	return verdicts
}
