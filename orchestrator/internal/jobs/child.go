package jobs

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/exocomp/exocomp/orchestrator/internal/durable"
	"github.com/exocomp/exocomp/orchestrator/internal/sandbox"
)

// toolEventsFD is the descriptor of the events file in a tool.
const toolEventsFD = sandbox.SpecFD + 1

// child is the supervisor's direct child: the shim, then the tool.
type child struct {
	pid    int
	pidfd  int // -1 where the kernel has none
	reaped atomic.Bool
}

// signal signals the tool. A tool that has ended is nothing: its pidfd names
// no other process.
func (c *child) signal(sig syscall.Signal) {
	switch {
	case c.pidfd >= 0:
		_ = unix.PidfdSendSignal(c.pidfd, sig, nil, 0)
	case !c.reaped.Load():
		_ = syscall.Kill(c.pid, sig)
	}
}

// wait returns the tool's status and reaps the orphans that come meanwhile.
// Where the tool never ran, its shim is about to end.
func (c *child) wait(ran bool) syscall.WaitStatus {
	if !ran {
		c.signal(syscall.SIGKILL)
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0 // no child is left: it cannot be, the tool is one
		case pid == c.pid:
			c.reaped.Store(true)
			return status
		}
	}
}

// reapAll collects every child that has ended.
func reapAll() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if pid <= 0 && !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// startTool starts the shim, records who it is, and only then lets it become
// the tool. startErr says why there is no tool; err that nothing ran at all.
func (s *supervisor) startTool(out *output) (startErr, err error) {
	link, shim, err := sandbox.NewLink()
	if err != nil {
		return nil, err
	}
	defer func() { _ = link.Close() }()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	files := []uintptr{null.Fd(), out.file.Fd(), out.file.Fd(), shim.Fd()}
	if s.spec.Events {
		events, err := os.OpenFile(s.c.eventsPath(), os.O_CREATE|os.O_WRONLY|os.O_APPEND|os.O_TRUNC, durable.PrivateFile)
		if err != nil {
			return nil, fmt.Errorf("open events: %w", err)
		}
		defer func() { _ = events.Close() }()
		files = append(files, events.Fd())
	}
	err = s.forkShim(files)
	_, _ = null.Close(), shim.Close()
	if err != nil {
		return nil, fmt.Errorf("start the shim: %w", err)
	}
	if err := s.record(); err != nil {
		s.tool.wait(false)
		return nil, err
	}
	return link.Exec(sandbox.Spec{Argv: s.spec.Argv, Env: s.toolEnv(), Dir: s.spec.ToolDir, Policy: s.spec.Sandbox}), nil
}

func (s *supervisor) forkShim(files []uintptr) error {
	s.tool.pidfd = -1
	attr := &syscall.ProcAttr{
		Dir:   "/",
		Env:   []string{AttemptEnv + "=" + s.spec.Token},
		Files: files,
		Sys:   &syscall.SysProcAttr{Setpgid: true, PidFD: &s.tool.pidfd},
	}
	// A tool with a state to save outlives its supervisor: the daemon tells it
	// to end, once. A death signal could be its second SIGTERM, at which tofu
	// exits without saving.
	if !s.spec.Graceful {
		attr.Sys.Pdeathsig = syscall.SIGTERM
	}
	if s.cgroup != "" {
		if dir, err := os.Open(string(s.cgroup)); err == nil {
			defer func() { _ = dir.Close() }()
			attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(dir.Fd())
		}
	}
	argv := []string{"exocomp", sandbox.ShimCommand}
	var err error
	s.tool.pid, err = syscall.ForkExec("/proc/self/exe", argv, attr)
	if err != nil && attr.Sys.UseCgroupFD {
		// The group is there, but nothing may be started in it.
		attr.Sys.UseCgroupFD = false
		s.tool.pidfd = -1
		s.tool.pid, err = syscall.ForkExec("/proc/self/exe", argv, attr)
	}
	if !attr.Sys.UseCgroupFD {
		_ = s.cgroup.remove()
		s.cgroup = ""
	}
	return err
}

// record makes process.json durable.
func (s *supervisor) record() error {
	boot, err := readBootID(s.spec.BootIDFile)
	if err != nil {
		return err
	}
	self, err := readStat(os.Getpid())
	if err != nil {
		return err
	}
	tool, err := readStat(s.tool.pid)
	if err != nil {
		return err
	}
	return s.c.writeRecord(record{
		BootID: boot, Supervisor: self.process, Tool: tool.process,
		Cgroup: s.cgroup, Graceful: s.spec.Graceful,
	})
}

// toolEnv is the tool's environment: what the driver allows and what this
// package promises.
func (s *supervisor) toolEnv() []string {
	env := append(slices.Clone(s.spec.Env), AttemptEnv+"="+s.spec.Token)
	if s.spec.Events {
		env = append(env, EventsEnv+"="+strconv.Itoa(toolEventsFD))
	}
	if len(s.spec.AgentKeys) > 0 {
		env = append(env, "SSH_AUTH_SOCK="+s.agentPath())
	}
	return env
}
