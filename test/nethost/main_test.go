package nethost_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exocomp/exocomp/test/nethost"
)

// holdVariable makes the test binary a process that holds a lab with a host
// until it is killed; it prints what it holds. See TestSweepAfterKill.
const holdVariable = "NETHOST_TEST_HOLD"

func TestMain(m *testing.M) {
	if os.Getenv(holdVariable) != "" {
		hold()
	}
	os.Exit(m.Run())
}

func hold() {
	ctx := context.Background()
	lab, err := nethost.New(ctx)
	if err != nil {
		panic(err)
	}
	h, err := lab.Host(ctx, nethost.HostOptions{Name: "held"})
	if err != nil {
		panic(err)
	}
	fmt.Println(lab.Dir(), h.HostPort())
	select {}
}

// login runs a command over a real ssh that trusts only the given host keys.
func login(t *testing.T, lab *nethost.Lab, h *nethost.Host, hostKeys []string, command string) (string, error) {
	t.Helper()
	name := h.Addr()
	if h.Port() != 22 {
		name = fmt.Sprintf("[%s]:%d", h.Addr(), h.Port())
	}
	var known strings.Builder
	for _, k := range hostKeys {
		fmt.Fprintf(&known, "%s %s\n", name, k)
	}
	file := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(file, []byte(known.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "ssh", "-F", "none", "-i", lab.Key().Path, "-p", strconv.Itoa(h.Port()),
		"-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=yes",
		"-o", "UserKnownHostsFile="+file, "-o", "GlobalKnownHostsFile=none",
		h.User()+"@"+h.Addr(), command)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

func mustLogin(t *testing.T, lab *nethost.Lab, h *nethost.Host, command string) string {
	t.Helper()
	out, err := login(t, lab, h, []string{h.PublicHostKey(nethost.ED25519)}, command)
	if err != nil {
		t.Fatalf("log in to %s: %v", h.Name(), err)
	}
	return out
}

func exists(t *testing.T, h *nethost.Host, path string) bool {
	t.Helper()
	ok, err := h.Exists(path)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

// A trace is what a lab has of the machine's: by identities that are not given
// again at once, unlike its number, which the next lab of anybody may get.
type trace struct {
	dir   string
	key   []byte     // the lab's private key file
	links []int      // interface indexes
	procs []*os.File // pidfds
}

// observe returns the trace of a lab that lives. It fails if there is none,
// because then gone would prove nothing.
func observe(t *testing.T, dir string) *trace {
	t.Helper()
	tr := &trace{dir: dir}
	var err error
	if tr.key, err = os.ReadFile(filepath.Join(dir, "key")); err != nil {
		t.Fatal(err)
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	bridge := "exnh" + filepath.Base(dir)
	for _, i := range interfaces {
		if rest, ok := strings.CutPrefix(i.Name, bridge); ok && (rest == "" || strings.ContainsAny(rest[:1], "puv")) {
			tr.links = append(tr.links, i.Index)
		}
	}
	for _, pid := range processes(t, dir) {
		namespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid_for_children", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, member := range members(t, namespace) {
			fd, err := unix.PidfdOpen(member, 0)
			if err != nil {
				t.Fatal(err)
			}
			tr.procs = append(tr.procs, os.NewFile(uintptr(fd), strconv.Itoa(member)))
		}
	}
	t.Cleanup(func() {
		for _, p := range tr.procs {
			p.Close()
		}
	})
	if len(tr.links) < 3 || len(tr.procs) < 1 {
		t.Fatalf("%s has %d links and %d processes: want at least the bridge with its uplink, and a host", dir, len(tr.links), len(tr.procs))
	}
	return tr
}

// left names what is left of a lab, or nothing.
func (tr *trace) left(t *testing.T) []string {
	t.Helper()
	var left []string
	if key, err := os.ReadFile(filepath.Join(tr.dir, "key")); err == nil && bytes.Equal(key, tr.key) {
		left = append(left, "directory "+tr.dir)
	}
	for _, index := range tr.links {
		if i, err := net.InterfaceByIndex(index); err == nil {
			left = append(left, "link "+i.Name)
		}
	}
	for _, p := range tr.procs {
		if !ended(p, 0) {
			left = append(left, "process "+p.Name())
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(mounts), "\n") {
		if strings.Contains(line, filepath.Dir(tr.dir)) {
			left = append(left, "mount "+line)
		}
	}
	return left
}

// ended reports whether the process of a pidfd has ended, or does so in time.
func ended(pidfd *os.File, timeout time.Duration) bool {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd.Fd()), Events: unix.POLLIN}}, int(timeout.Milliseconds()))
		if !errors.Is(err, unix.EINTR) {
			return n == 1
		}
	}
}

// processes returns the processes of this machine that hold hosts of a lab.
func processes(t *testing.T, dir string) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if data, err := os.ReadFile("/proc/" + e.Name() + "/cmdline"); err == nil && bytes.Contains(data, []byte("-holder\x00"+dir+"/")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// members returns the processes in a pid namespace, `pid:[…]`.
func members(t *testing.T, namespace string) []int {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/ns/pid_for_children")
	if err != nil {
		t.Fatal(err)
	}
	var in []int
	for _, path := range found {
		if target, err := os.Readlink(path); err == nil && target == namespace {
			pid, err := strconv.Atoi(strings.Split(path, "/")[2])
			if err != nil {
				t.Fatal(err)
			}
			in = append(in, pid)
		}
	}
	return in
}
