package main

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The host is announced before its late sshd answers, and ends with the input.
func TestRun(t *testing.T) {
	stdin, closeInput := io.Pipe()
	stdout, output := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := run(t.Context(), []string{"run", "--name", "web7", "--user", "admin", "--port", "2222", "--late", "500ms"}, stdin, output, io.Discard)
		output.CloseWithError(err)
		done <- err
	}()
	var h host
	if err := json.NewDecoder(stdout).Decode(&h); err != nil {
		t.Fatalf("read what the command prints: %v", err)
	}
	if h.Name != "web7" || h.User != "admin" || h.Port != 2222 || h.HostKey == "" || h.Fingerprint == "" {
		t.Errorf("the command printed %+v", h)
	}
	if _, err := os.Stat(h.Key); err != nil {
		t.Error(err)
	}
	if b, err := banner(t, h, 10*time.Second); err != nil || b != "SSH-" {
		t.Errorf("the late sshd said %q, %v", b, err)
	}
	closeInput.Close()
	if err := <-done; err != nil {
		t.Errorf("end: %v", err)
	}
	if _, err := os.Stat(h.Key); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the key outlives the command: %v", err)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"walk"}, {"run", "surplus"}, {"run", "--late", "soon"}} {
		if err := run(t.Context(), args, nil, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "--help") {
			t.Errorf("nethost %v: %v", args, err)
		}
	}
}

// The help says how long the host lives, however it is asked for.
func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"-h"}, {"help"}, {"run", "--help"}} {
		var out strings.Builder
		err := run(t.Context(), args, nil, io.Discard, &out)
		if !errors.Is(err, flag.ErrHelp) || !strings.Contains(out.String(), "until standard input ends") || !strings.Contains(out.String(), "-late") {
			t.Errorf("nethost %v: %v\n%s", args, err, out.String())
		}
	}
}

// banner connects until the host no longer refuses.
func banner(t *testing.T, h host, within time.Duration) (string, error) {
	t.Helper()
	for deadline := time.Now().Add(within); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", net.JoinHostPort(h.Address, strconv.Itoa(h.Port)))
		if errors.Is(err, syscall.ECONNREFUSED) && time.Now().Before(deadline) {
			continue
		}
		if err != nil {
			return "", err
		}
		defer c.Close()
		b := make([]byte, 4)
		n, err := c.Read(b)
		return string(b[:n]), err
	}
}
