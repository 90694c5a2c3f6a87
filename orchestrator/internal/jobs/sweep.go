package jobs

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// sweepLimit bounds a sweep: a process that cannot be killed (in the kernel,
// or another user's) must not hold a job for ever.
const sweepLimit = 10 * time.Second

// sweeper ends every process that a phase left: what is in its cgroup, what
// carries the attempt's token in its environment, what is bound to a socket in
// its work directory (an ssh master overwrites its own environment) and, in a
// supervisor, everything below it.
type sweeper struct {
	token   string
	workDir string
	cgroup  cgroup
	below   int           // a subreaper whose descendants are swept; 0 for none
	gentle  time.Duration // how long what is left may take after a SIGTERM
	reap    func()        // collects ended children; nil where there are none
}

// sweep returns when nothing is left. The error names what could not be ended
// before limit.
func (s sweeper) sweep(limit time.Duration) error {
	deadline := time.Now().Add(limit)
	gentleUntil := time.Now().Add(s.gentle)
	told := map[process]bool{}
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if s.reap != nil {
			s.reap()
		}
		left, err := s.left()
		if err != nil {
			return err
		}
		if len(left) == 0 && (s.cgroup == "" || s.cgroup.empty()) {
			if s.cgroup != "" {
				return s.cgroup.remove()
			}
			return nil
		}
		if s.gentle > 0 && len(left) > 0 && time.Now().Before(gentleUntil) {
			tellRoots(left, told)
			deadline = time.Now().Add(limit)
		} else {
			if s.cgroup != "" {
				_ = s.cgroup.kill()
			}
			for _, p := range left {
				_ = p.signal(syscall.SIGKILL)
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes could not be ended: %v", pids(left))
		}
		time.Sleep(pause)
	}
}

// tellRoots sends SIGTERM, once each, to the roots of what is left.
func tellRoots(left []procStat, told map[process]bool) {
	for _, p := range roots(left) {
		if !told[p.process] {
			told[p.process] = true
			_ = p.signal(syscall.SIGTERM)
			_ = p.signal(syscall.SIGCONT) // one that was stopped would not hear it
		}
	}
}

// roots returns those whose parent is not among them.
func roots(left []procStat) []procStat {
	var list []procStat
	for _, p := range left {
		if !slices.ContainsFunc(left, func(o procStat) bool { return o.PID == p.parent }) {
			list = append(list, p)
		}
	}
	return list
}

func pids(list []procStat) []int {
	var ids []int
	for _, p := range list {
		ids = append(ids, p.PID)
	}
	return ids
}

// left lists what still runs, without the calling process.
func (s sweeper) left() ([]procStat, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	parents := make(map[int]int, len(all))
	for _, p := range all {
		parents[p.PID] = p.parent
	}
	inodes := boundSockets(s.workDir)
	self := os.Getpid()
	return slices.DeleteFunc(all, func(p procStat) bool {
		switch {
		case p.PID == self || p.PID == 1:
			return true
		case s.below != 0 && isBelow(parents, p.PID, s.below):
			return false
		case carriesToken(p.PID, s.token):
			return false
		default:
			return len(inodes) == 0 || !holdsSocket(p.PID, inodes)
		}
	}), nil
}

func isBelow(parents map[int]int, pid, ancestor int) bool {
	for range 1000 {
		parent, ok := parents[pid]
		if !ok || parent == 0 {
			return false
		}
		if parent == ancestor {
			return true
		}
		pid = parent
	}
	return false
}

// carriesToken reports whether a process was started with the token in its
// environment.
func carriesToken(pid int, token string) bool { return hasEnv(pid, AttemptEnv+"="+token) }

// boundSockets returns the inodes of the unix sockets that are bound below
// dir, as /proc/<pid>/fd names them (proc_net(5)).
func boundSockets(dir string) map[string]bool {
	f, err := os.Open("/proc/net/unix")
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	inodes := map[string]bool{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 8 || !strings.HasPrefix(strings.Join(fields[7:], " "), dir+"/") {
			continue
		}
		inodes["socket:["+fields[6]+"]"] = true
	}
	return inodes
}

func holdsSocket(pid int, inodes map[string]bool) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrPermission) {
		return false
	}
	for _, e := range entries {
		if target, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && inodes[target] {
			return true
		}
	}
	return false
}
