package jobs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process names one process for ever: a pid comes back, but not with the same
// start time on the same boot.
type process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks after boot, field 22 of proc_pid_stat(5)
}

// procStat is a line of the process table.
type procStat struct {
	process
	parent int
	zombie bool
}

// readStat reads /proc/<pid>/stat.
func readStat(pid int) (procStat, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return procStat{}, err
	}
	// The command's name may hold anything, parentheses too.
	_, rest, ok := strings.Cut(string(data[max(0, strings.LastIndexByte(string(data), ')')):]), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return procStat{}, fmt.Errorf("read /proc/%d/stat: unexpected form", pid)
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return procStat{}, fmt.Errorf("read /proc/%d/stat: %w", pid, err)
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return procStat{}, fmt.Errorf("read /proc/%d/stat: %w", pid, err)
	}
	return procStat{
		process: process{PID: pid, Start: start},
		parent:  parent,
		zombie:  fields[0] == "Z" || fields[0] == "X",
	}, nil
}

// alive reports whether p still runs; a zombie does not.
func (p process) alive() bool {
	if p.PID <= 0 {
		return false
	}
	s, err := readStat(p.PID)
	return err == nil && s.Start == p.Start && !s.zombie
}

// signal sends sig to p and to no other process that was given its pid. It is
// [os.ErrProcessDone] where p is gone.
func (p process) signal(sig syscall.Signal) error {
	h, err := os.FindProcess(p.PID) // a pidfd where the kernel has them
	if err != nil {
		return err
	}
	defer func() { _ = h.Release() }()
	if !p.alive() {
		return os.ErrProcessDone
	}
	return h.Signal(sig)
}

// processes returns the process table, without zombies. What ends while it is
// read is left out.
func processes() ([]procStat, error) {
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var list []procStat
	for _, n := range names {
		pid, err := strconv.Atoi(filepath.Base(n))
		if err != nil {
			continue
		}
		if s, err := readStat(pid); err == nil && !s.zombie {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("list processes: /proc is empty")
	}
	return list, nil
}

// descendsFrom reports whether pid is ancestor or has it above itself.
func descendsFrom(pid, ancestor int) bool {
	for range 1000 {
		if pid == ancestor {
			return true
		}
		s, err := readStat(pid)
		if err != nil || s.parent <= 0 {
			return false
		}
		pid = s.parent
	}
	return false
}

// defaultBootID is the file whose content changes with every boot.
const defaultBootID = "/proc/sys/kernel/random/boot_id"

func readBootID(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// endWatch waits for the end of a process that need not be a child.
type endWatch struct{ pidfd int } // -1 where the kernel has none

func (p process) watchEnd() endWatch {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		fd = -1
	}
	return endWatch{fd}
}

// poll returns when the process has ended or the time is over.
func (w endWatch) poll(limit time.Duration) {
	if w.pidfd < 0 {
		time.Sleep(limit)
		return
	}
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(w.pidfd), Events: unix.POLLIN}}, int(limit.Milliseconds()))
}

func (w endWatch) close() {
	if w.pidfd >= 0 {
		_ = unix.Close(w.pidfd)
	}
}
