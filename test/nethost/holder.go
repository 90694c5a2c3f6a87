package nethost

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

//go:embed host.sh
var hostScript string

// holderName is the $0 of every holder, followed by the host's directory: the
// sweep recognizes them by it.
const holderName = "exocomp-nethost-holder"

// A holder is the first process of a host's namespaces. With it end, by the
// kernel's hand, all its processes, mounts and links: no cgroup is needed. It
// ends when its standard input does and when the thread that forked it does,
// so it never outlives this process.
type holder struct {
	pid   int
	input *os.File
	done  chan struct{} // closed when it was reaped
	kill  func() error
}

// startHolder starts the holder of h; connect lays the cable to the network
// namespace of the given pid. When it returns the host is up, without an sshd.
func startHolder(ctx context.Context, h *Host, connect func(pid int) error) (*holder, error) {
	complaints, err := os.Create(filepath.Join(h.dir, "setup.log"))
	if err != nil {
		return nil, err
	}
	defer complaints.Close()
	if err := os.Mkdir(filepath.Join(h.dir, "layer"), 0o755); err != nil {
		return nil, err
	}
	childIn, input, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer childIn.Close()
	output, childOut, err := os.Pipe()
	if err != nil {
		input.Close()
		return nil, err
	}
	defer output.Close()

	// Not bound to ctx, which is the context of the start, not of the host.
	cmd := exec.Command("bash", "-c", hostScript, holderName, h.dir, h.name, h.address)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = childIn, childOut, complaints
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
		Setpgid:    true, // an interrupt from the terminal is ours to handle
	}
	k := &holder{input: input, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// Pdeathsig is per thread: this one stays until the holder has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // killed, as a rule
		}
		close(k.done)
	}()
	err = <-started
	childOut.Close()
	if err != nil {
		input.Close()
		return nil, fmt.Errorf("start holder: %w", err)
	}
	k.pid, k.kill = cmd.Process.Pid, cmd.Process.Kill

	if err := k.await(ctx, output, connect); err != nil {
		k.stop()
		said, _ := os.ReadFile(complaints.Name())
		return nil, errors.Join(err, errors.New(strings.TrimSpace(string(said))))
	}
	return k, nil
}

func (k *holder) await(ctx context.Context, output *os.File, connect func(pid int) error) error {
	if err := connect(k.pid); err != nil {
		return fmt.Errorf("lay cable: %w", err)
	}
	if _, err := k.input.WriteString("\n"); err != nil {
		return fmt.Errorf("start set-up: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = output.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := bufio.NewReader(output).ReadString('\n'); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fmt.Errorf("set up host: %w", err)
	}
	return nil
}

// stop ends the host. When it returns none of its processes exists any more.
func (k *holder) stop() {
	k.input.Close()
	_ = k.kill() // an error means that it has ended already
	<-k.done
}

// killHolders ends the hosts of a slot whose owner is dead and waits for them.
func (s *slot) killHolders(ctx context.Context) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !s.holds(pid) {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // ended meanwhile
		}
		if s.holds(pid) { // still: the descriptor is the holder's
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
			err = awaitExit(ctx, fd)
		}
		unix.Close(fd)
		if err != nil {
			return fmt.Errorf("wait for process %d: %w", pid, err)
		}
	}
	return nil
}

// holds reports whether a process is the holder of a host of the slot.
func (s *slot) holds(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false
	}
	_, dir, found := bytes.Cut(data, []byte("\x00"+holderName+"\x00"))
	return found && bytes.HasPrefix(dir, []byte(s.dir+"/"))
}

// awaitExit waits until the process of a pidfd has ended.
func awaitExit(ctx context.Context, fd int) error {
	for ctx.Err() == nil {
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if ready > 0 {
			return nil
		}
	}
	return ctx.Err()
}
