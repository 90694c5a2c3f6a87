package nethost

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// startTimeout bounds the wait for an sshd that does not listen, so that a
// broken configuration shows as itself and not as the test's own deadline.
const startTimeout = 30 * time.Second

// ErrNoSSHD: the host's sshd is not running.
var ErrNoSSHD = errors.New("sshd is not running")

// StartSSHD starts sshd and returns when it listens. It does nothing if it runs.
func (h *Host) StartSSHD(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.startSSHD(ctx)
}

func (h *Host) startSSHD(ctx context.Context) error {
	if h.sshd != 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	from := h.log.len()
	// The shell ends at once and leaves sshd to the host's init.
	cmd := h.command(ctx, "sh", "-c", "setsid "+sshdPath+" -D -e </dev/null >/dev/null & echo $!")
	cmd.Stderr = h.log.input
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("start sshd: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		return fmt.Errorf("read pid of sshd: %w", err)
	}
	if err := h.log.await(ctx, from, "Server listening on "); err != nil {
		return fmt.Errorf("wait for sshd to listen: %w; its log:\n%s", err, h.log.text())
	}
	h.sshd = pid
	return nil
}

// StopSSHD ends the sshd that listens: new connections are refused. Sessions
// that are open stay open, as on a machine whose service is stopped. It does
// nothing if sshd does not run.
func (h *Host) StopSSHD(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stopSSHD(ctx)
}

func (h *Host) stopSSHD(ctx context.Context) error {
	if h.sshd == 0 {
		return nil
	}
	const script = `kill -TERM $1; kill -CONT $1; while kill -0 $1; do sleep 0.005; done 2>/dev/null`
	if _, err := h.Exec(ctx, "sh", "-c", script, "stop", strconv.Itoa(h.sshd)); err != nil {
		return fmt.Errorf("stop sshd: %w", err)
	}
	h.sshd = 0
	return nil
}

// PauseSSHD makes the host mute: the kernel accepts connections, and nobody
// ever says a word on them.
func (h *Host) PauseSSHD(ctx context.Context) error { return h.signalSSHD(ctx, "STOP") }

// ResumeSSHD ends a pause; who waits on an open connection is answered.
func (h *Host) ResumeSSHD(ctx context.Context) error { return h.signalSSHD(ctx, "CONT") }

func (h *Host) signalSSHD(ctx context.Context, signal string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sshd == 0 {
		return ErrNoSSHD
	}
	if _, err := h.Exec(ctx, "kill", "-"+signal, strconv.Itoa(h.sshd)); err != nil {
		return fmt.Errorf("signal sshd: %w", err)
	}
	return nil
}

// RotateHostKeys gives the host new keys of the same types, as a reinstalled
// machine has. A running sshd is restarted and listens when it returns.
func (h *Host) RotateHostKeys(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	keys, err := newHostKeys(h.keyTypes, "root@"+h.name)
	if err != nil {
		return err
	}
	running := h.sshd != 0
	if err := h.stopSSHD(ctx); err != nil {
		return err
	}
	for t, k := range keys {
		if err := h.WriteFile(hostKeyPath(t), k.file, 0o600); err != nil {
			return fmt.Errorf("write host key: %w", err)
		}
	}
	h.keys = keys
	if !running {
		return nil
	}
	return h.startSSHD(ctx)
}
