package jobs

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/fault"
)

// exitUsage is the code of a supervisor that was not started by a daemon.
const exitUsage = 2

// SuperviseMain is the entry of `exocomp supervise`, which the daemon starts
// for each phase. It runs the phase's tool and everything that must live as
// long, ends what the tool left, leaves the result and returns the exit code.
func SuperviseMain() int {
	// A death signal is tied to the thread that forked: it must not end first.
	runtime.LockOSThread()
	var s spec
	in := os.NewFile(superviseSpecFD, "spec")
	err := gob.NewDecoder(in).Decode(&s)
	_ = in.Close()
	if err != nil {
		fmt.Fprintf(os.Stderr, "exocomp %s is started by the daemon for a job: %v\n", SuperviseCommand, err)
		return exitUsage
	}
	// The lock is released when the last copy of its descriptor is closed, so
	// no child may have one. Nor may it have what the daemon's starter left
	// open; kernels before 5.11 cannot say that in one call.
	unix.CloseOnExec(superviseLockFD)
	_ = unix.CloseRange(superviseLockFD, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC)

	sup := &supervisor{
		spec: s,
		c:    control{s.Dir},
		slog: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	if err := sup.run(); err != nil {
		sup.slog.Error(err.Error())
		return 1
	}
	return 0
}

// supervisor runs one tool.
type supervisor struct {
	spec spec
	c    control
	slog *slog.Logger

	cgroup  cgroup
	tool    child
	started time.Time

	mu     sync.Mutex
	told   bool          // by the daemon, to end the tool
	forced chan struct{} // closed by signalForce
}

// What the daemon asks of a supervisor. Signals that others send to everything,
// at the end of a session or of the machine, are none of these: a supervisor
// lets its tool decide what they mean.
const (
	signalEnd   = syscall.SIGUSR2 // tell the tool to end
	signalForce = syscall.SIGUSR1 // kill it
)

func (s *supervisor) run() error {
	signals := make(chan os.Signal, 16)
	// Caught, not ignored: what is ignored stays ignored in the tool.
	signal.Notify(signals, signalEnd, signalForce, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	s.forced = make(chan struct{})
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a subreaper: %w", err)
	}
	s.started = time.Now()

	out, err := s.openOutput()
	if err != nil {
		return err
	}
	if err := s.c.keepRoom(); err != nil {
		s.slog.Warn("keep room for the result", "err", err)
	}
	agent, err := s.startAgent()
	if err != nil {
		s.slog.Error("start the ssh-agent", "err", err)
		return s.leave(outcome{StartError: err.Error()}, out)
	}
	defer agent.close()
	if s.spec.Cgroup {
		s.cgroup = makeCgroup(cgroupName(s.spec.Attempt, s.spec.Phase))
		defer func() { _ = s.cgroup.remove() }() // where nothing was started in it
	}

	startErr, err := s.startTool(out)
	if err != nil {
		return err
	}
	go s.obey(signals)
	status := s.tool.wait(startErr == nil)
	fault.Point(fault.AfterToolExit, s.spec.Phase)
	fault.Point(fault.AfterToolExit, s.spec.Kind)

	s.sweep()
	agent.close()
	o := outcome{ExitCode: status.ExitStatus()}
	if status.Signaled() {
		o.Signal = unix.SignalName(status.Signal())
	}
	if startErr != nil {
		o = outcome{StartError: startErr.Error()}
	}
	return s.leave(o, out)
}

// obey acts on signals for as long as the process lives.
func (s *supervisor) obey(signals <-chan os.Signal) {
	for sig := range signals {
		switch sig {
		case signalEnd:
			first := s.tell()
			if s.spec.Graceful {
				if s.c.markTerminated() && first {
					s.tool.signal(syscall.SIGTERM)
					s.tool.signal(syscall.SIGCONT) // one that was stopped would not hear it
				}
				continue
			}
			if first {
				time.AfterFunc(s.spec.Grace, func() { s.tool.signal(syscall.SIGKILL) })
				s.tool.signal(syscall.SIGTERM)
			}
		case signalForce:
			s.tell()
			s.tool.signal(syscall.SIGKILL)
			if !isClosed(s.forced) {
				close(s.forced)
			}
		default:
			s.slog.Info("ignored a signal", "signal", sig.String())
		}
	}
}

func (s *supervisor) tell() (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first, s.told = !s.told, true
	return first
}

func (s *supervisor) sweep() {
	sw := sweeper{
		token: s.spec.Token, workDir: s.spec.WorkDir, cgroup: s.cgroup,
		below: os.Getpid(), reap: reapAll,
	}
	if s.spec.Graceful && !isClosed(s.forced) {
		sw.gentle = s.spec.Grace
	}
	if err := sw.sweep(sweepLimit); err != nil {
		s.slog.Error("end what the tool left", "err", err)
	}
}

// leave drains the log and writes the result. Where the disk is full it has the
// room that was kept, and tries for as long as that is not enough: the lock is
// held meanwhile, so nothing is taken for lost. Where the
// phase's directory was removed nobody can read a result, and it gives up.
func (s *supervisor) leave(o outcome, out *output) error {
	out.finish()
	s.mu.Lock()
	o.Told = s.told
	s.mu.Unlock()
	o.Token, o.StartedAt, o.FinishedAt = s.spec.Token, s.started, time.Now()
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, retryWait) {
		err := s.c.writeOutcome(o)
		if err != nil && s.c.giveRoom() {
			err = s.c.writeOutcome(o)
		}
		if err == nil {
			s.c.giveRoom()
			return nil
		}
		s.slog.Error("leave the result", "err", err)
		if _, gone := os.Stat(s.c.dir); errors.Is(gone, fs.ErrNotExist) {
			return err
		}
		select {
		case <-s.forced:
			return err
		case <-time.After(wait):
		}
	}
}

// secrets returns everything that must not reach the log.
func (s *supervisor) secrets() []orchestrator.Secret {
	list := []orchestrator.Secret{orchestrator.NewSecret(s.spec.Token)}
	for _, v := range append(s.spec.Secrets, s.spec.AgentKeys...) {
		list = append(list, orchestrator.NewSecret(v))
	}
	return list
}
