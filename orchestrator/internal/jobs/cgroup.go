package jobs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// cgroup is the directory of a version 2 control group, empty where there is
// none (cgroups(7)).
type cgroup string

// makeCgroup makes a group below the caller's own, so that killing it never
// reaches the caller. It returns the empty group where that is not possible:
// no unified hierarchy, not delegated, read-only.
func makeCgroup(name string) cgroup {
	own, err := ownCgroup()
	if err != nil {
		return ""
	}
	dir := filepath.Join(own, name)
	//nolint:gosec // the kernel's own mode for control groups; nothing secret is in it
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return ""
	}
	return cgroup(dir)
}

// cgroupName is the name of a phase's group.
func cgroupName(attempt, phase string) string { return "exocomp-" + attempt + "-" + phase }

// leftCgroup returns the group that an attempt's phase left below the caller's
// own, empty where there is none.
func leftCgroup(attempt, phase string) cgroup {
	own, err := ownCgroup()
	if err != nil {
		return ""
	}
	dir := filepath.Join(own, cgroupName(attempt, phase))
	if _, err := os.Stat(dir); err != nil {
		return ""
	}
	return cgroup(dir)
}

// ownCgroup returns the directory of the caller's group.
func ownCgroup() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	path, err := cgroupOf("self")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mounts)) {
		before, after, _ := strings.Cut(line, " - ")
		f := strings.Fields(before)
		if len(f) < 5 || !strings.HasPrefix(after, "cgroup2 ") {
			continue
		}
		root, mount := unescapeMount(f[3]), unescapeMount(f[4])
		if below, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/")); ok && (below == "" || below[0] == '/') {
			return filepath.Join(mount, below), nil
		}
	}
	return "", errors.New("the unified cgroup hierarchy is not mounted")
}

// cgroupOf returns the version 2 group of a process, as seen from this one.
func cgroupOf(pid string) (string, error) {
	data, err := os.ReadFile("/proc/" + pid + "/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(data)) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok && !strings.HasPrefix(path, "/..") {
			return path, nil
		}
	}
	return "", errors.New("the process is in no version 2 cgroup")
}

// unescapeMount undoes the octal escapes of proc_pid_mountinfo(5).
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// kill sends SIGKILL to everything in the group and below it.
func (c cgroup) kill() error {
	err := os.WriteFile(filepath.Join(string(c), "cgroup.kill"), []byte("1"), 0)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Before Linux 5.14 there is no such file, or the group is gone already.
	return filepath.WalkDir(string(c), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "cgroup.procs" {
			return ignoreMissing(err)
		}
		pids, err := os.ReadFile(path)
		for pid := range strings.FieldsSeq(string(pids)) {
			if n, err := strconv.Atoi(pid); err == nil && n > 1 {
				_ = syscall.Kill(n, syscall.SIGKILL)
			}
		}
		return ignoreMissing(err)
	})
}

// empty reports whether no process lives in the group or below it.
func (c cgroup) empty() bool {
	events, err := os.ReadFile(filepath.Join(string(c), "cgroup.events"))
	return errors.Is(err, fs.ErrNotExist) || err == nil && strings.Contains(string(events), "populated 0")
}

// remove removes the group and those that the tool made below it. They must
// be empty.
func (c cgroup) remove() error {
	if c == "" {
		return nil
	}
	entries, err := os.ReadDir(string(c))
	if err != nil {
		return ignoreMissing(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := cgroup(filepath.Join(string(c), e.Name())).remove(); err != nil {
				return err
			}
		}
	}
	if err := os.Remove(string(c)); err != nil {
		return ignoreMissing(fmt.Errorf("remove cgroup: %w", err))
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
