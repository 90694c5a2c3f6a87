package jobs

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
	"github.com/exocomp/exocomp/orchestrator/internal/fault"
	"github.com/exocomp/exocomp/orchestrator/internal/sandbox"
)

// SuperviseCommand is the argument that makes the executable a supervisor.
const SuperviseCommand = "supervise"

// Entry runs the hidden entry that args, a process's arguments, name: the
// supervisor or the sandbox shim. The executable calls it before anything else,
// as does the TestMain of a package whose tests run tools. ok is false where
// args name neither.
func Entry(args []string) (code int, ok bool) {
	if len(args) < 2 {
		return 0, false
	}
	switch args[1] {
	case SuperviseCommand:
		return SuperviseMain(), true
	case sandbox.ShimCommand:
		return sandbox.ExecMain(), true
	default:
		return 0, false
	}
}

// Descriptors that a supervisor inherits besides its standard ones.
const (
	superviseSpecFD = 3 // a pipe with its spec, secrets included
	superviseLockFD = 4 // the phase's lock, held
)

// spec is what a supervisor is told.
type spec struct {
	Attempt, Phase, Kind string
	Token                string
	Dir, LogDir, WorkDir string // the phase's, the attempt's, the tool's
	Argv, Env            []string
	ToolDir              string
	Secrets, AgentKeys   []string
	Graceful             bool
	Grace                time.Duration
	KeepStdout, Messages bool
	Events               bool
	Sandbox              sandbox.Policy
	BootIDFile           string
	Cgroup               bool
}

func (a *Attempt) spec(t Tool, c control) spec {
	s := spec{
		Attempt: string(a.Job.Attempt.ID), Phase: t.Phase, Kind: a.kind(),
		Token: a.Job.Attempt.Token.Reveal(),
		Dir:   c.dir, LogDir: a.ControlDir, WorkDir: a.WorkDir,
		Argv: t.Argv, Env: t.Env, ToolDir: t.Dir,
		Secrets: reveal(t.Secrets), AgentKeys: reveal(t.AgentKeys),
		Graceful: t.Graceful, Grace: t.Grace, KeepStdout: t.KeepStdout, Messages: t.Messages, Events: t.Events,
		Sandbox: t.Sandbox, BootIDFile: a.cfg.BootIDFile, Cgroup: !a.cfg.noCgroups,
	}
	if s.Grace == 0 {
		s.Grace = DefaultGrace
	}
	return s
}

func reveal(secrets []orchestrator.Secret) []string {
	var list []string
	for _, s := range secrets {
		list = append(list, s.Reveal())
	}
	return list
}

// start takes the phase's lock, makes the intent durable and hands the lock to a
// new supervisor, so that there is no moment in which a live phase looks dead. The
// channel is closed when the supervisor has ended and is reaped. lock is the
// phase's lock where it was made before; start closes it.
func (a *Attempt) start(ctx context.Context, t Tool, c control, lock *os.File) (exited <-chan struct{}, err error) {
	defer func() { closeLock(lock) }()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	// The lock first: where a phase was announced and has none, it was removed.
	if err = a.makeLock(c, &lock); err != nil {
		return nil, err
	}
	err = a.retry(ctx, "record the intent of phase "+t.Phase, func(ctx context.Context) error {
		return a.cfg.Queue.SetPhase(ctx, a.Job.ID, a.Job.Attempt.Token, t.Phase)
	})
	if err != nil {
		return nil, err
	}
	a.newest = t.Phase
	a.fault(fault.AfterIntent, t.Phase)
	if exited, err = a.fork(a.spec(t, c), c, lock); err != nil {
		return nil, fmt.Errorf("start the supervisor of phase %s: %w", t.Phase, err)
	}
	a.fault(fault.AfterFork, t.Phase)
	return exited, nil
}

// makeLock makes the phase's lock, durably, and takes it, unless it is there.
func (a *Attempt) makeLock(c control, lock **os.File) error {
	if *lock != nil {
		return nil
	}
	if err := durable.Mkdir(c.dir); err != nil {
		return err
	}
	made, err := c.tryLock(true)
	if err != nil {
		return err
	}
	if made == nil {
		return orchestrator.Errorf(orchestrator.CodeInternal, "somebody else locked phase %s", filepath.Base(c.dir))
	}
	*lock = made
	return durable.SyncDir(c.dir)
}

func (a *Attempt) fork(s spec, c control, lock *os.File) (<-chan struct{}, error) {
	out, err := os.OpenFile(c.logPath(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, durable.PrivateFile)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	specIn, specOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(a.cfg.SelfExe)
	cmd.Args = []string{"exocomp", SuperviseCommand, s.Attempt, s.Phase} // the last two for ps
	cmd.Env = append(faultEnv(), supervises(s.Token, s.Phase))
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = out, out
	cmd.ExtraFiles = []*os.File{specIn, lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = specIn.Close() // else a supervisor that dies would leave us writing
	if err != nil {
		_ = specOut.Close()
		return nil, err
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait() // what it did stands in its result
	}()
	// A supervisor that did not get all of it starts nothing and ends, and
	// that is seen by whoever waits.
	_ = gob.NewEncoder(specOut).Encode(s)
	_ = specOut.Close()
	return exited, nil
}

// faultEnv is what a supervisor's environment has in a test build: the fault
// points.
func faultEnv() []string {
	env := []string{}
	if fault.Enabled {
		for _, name := range []string{"EXOCOMP_FAULT", "EXOCOMP_FAULT_ONCE"} {
			if v, ok := os.LookupEnv(name); ok {
				env = append(env, name+"="+v)
			}
		}
	}
	return env
}

var errNoSupervisor = errors.New("the supervisor is not known yet, or gone")
