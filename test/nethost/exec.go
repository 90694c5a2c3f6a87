package nethost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Exec runs a command on the host as root, past its sshd, and returns its
// standard output. The error carries standard error and wraps *exec.ExitError.
// When ctx ends the command is killed.
func (h *Host) Exec(ctx context.Context, argv ...string) ([]byte, error) {
	cmd := h.command(ctx, argv...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("run %s on %s: %w: %s", strings.Join(argv, " "), h.name, err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

// command returns a command in all namespaces of the host. It is in a process
// group of its own, because nsenter forks and would die alone.
func (h *Host) command(ctx context.Context, argv ...string) *exec.Cmd {
	args := append([]string{"--target", strconv.Itoa(h.holder.pid), "--mount", "--uts", "--ipc", "--net", "--pid", "--"}, argv...)
	cmd := exec.CommandContext(ctx, "nsenter", args...)
	cmd.Env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=/root", "USER=root", "LOGNAME=root", "SHELL=/bin/bash", "LANG=C.UTF-8",
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // for output that a background process keeps open
	return cmd
}

// Process is one process of a host.
type Process struct {
	PID  int // in the host
	UID  int
	Args []string
}

// Processes returns the processes of the host without its init and without
// those that have ended and only wait to be reaped.
func (h *Host) Processes() ([]Process, error) {
	root := fmt.Sprintf("/proc/%d/root/proc", h.holder.pid)
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("list processes of %s: %w", h.name, err)
	}
	var list []Process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == 1 {
			continue
		}
		dir := root + "/" + e.Name()
		info, err := os.Stat(dir)
		cmdline, err2 := os.ReadFile(dir + "/cmdline")
		if errors.Join(err, err2) != nil || len(cmdline) == 0 {
			continue // ended, meanwhile or waiting to be reaped
		}
		list = append(list, Process{
			PID:  pid,
			UID:  int(info.Sys().(*syscall.Stat_t).Uid),
			Args: strings.Split(strings.TrimSuffix(string(cmdline), "\x00"), "\x00"),
		})
	}
	return list, nil
}
