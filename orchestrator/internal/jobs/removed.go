package jobs

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

// superviseEnv names the environment variable that tells whose supervisor a
// process is, for when its record is gone. It is not [AttemptEnv]: a sweep must
// not end a supervisor.
const superviseEnv = "EXOCOMP_SUPERVISES"

// supervises is that variable for a phase.
func supervises(token, phase string) string { return superviseEnv + "=" + phase + ":" + token }

// wasRemoved reports whether a phase without a lock was begun all the same:
// somebody has removed its directory, or that of the whole attempt. The lock is
// made before the intent is recorded, so where a phase was announced and has
// none, it had one. A phase that another was announced after has been begun too
// if the attempt lost its directory; nobody knows, so it is not begun again.
func (a *Attempt) wasRemoved(c control) (bool, error) {
	phase := filepath.Base(c.dir)
	switch {
	case a.newest == phase || a.read[phase]:
		return true, nil
	case a.newest == "" || a.read[a.newest]:
		return false, nil
	}
	_, err := os.Lstat(a.control(a.newest).lockPath())
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return false, err
}

// lookRemoved reads what became of a phase whose lock is gone. Its supervisor
// may live and is waited for; a result that it left all the same counts.
func (a *Attempt) lookRemoved(c control) (finding, error) {
	gone, err := a.wasRemoved(c)
	if err != nil || !gone {
		return finding{verdict: phaseFresh}, err
	}
	live, err := a.findSupervisor(c)
	if err != nil {
		return finding{}, err
	}
	if live != nil {
		return finding{verdict: phaseLive}, nil
	}
	f := finding{verdict: phaseLost, removed: true}
	if f.outcome, err = c.readOutcome(a.Job.Attempt.Token); f.outcome != nil {
		f.verdict = phaseFinished
	}
	return f, err
}

// findSupervisor looks for the supervisor of the phase, or of the one that was
// announced last, among all processes; nil where there is none.
func (a *Attempt) findSupervisor(c control) (*process, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	token := a.Job.Attempt.Token.Reveal()
	for _, p := range all {
		for _, phase := range []string{filepath.Base(c.dir), a.newest} {
			if hasEnv(p.PID, supervises(token, phase)) {
				return &p.process, nil
			}
		}
	}
	return nil, nil
}

// hasEnv reports whether a process was started with this entry in its
// environment.
func hasEnv(pid int, want string) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if string(entry) == want {
			return true
		}
	}
	return false
}

// endUnrecorded ends what a phase left whose supervisor died and whose record
// is gone, as [Attempt.endGracefully] does: without the record the tool is known
// by the token, and that it is graceful is assumed where nobody can say.
func (a *Attempt) endUnrecorded(ctx context.Context, c control) error {
	s := sweeper{token: a.Job.Attempt.Token.Reveal(), workDir: a.WorkDir}
	first, err := s.left()
	if err != nil || len(first) == 0 {
		return err
	}
	if err := durable.Mkdir(c.dir); err != nil {
		a.slog.Warn("note that a tool without a supervisor is told to end", "err", err)
	}
	tools := roots(first)
	if c.markTerminated() {
		a.slog.Warn("told a tool without a supervisor and a record to end", "pids", pids(tools))
		tellRoots(first, map[process]bool{})
	}
	for _, tool := range tools {
		if err := a.awaitEnd(ctx, tool.process); err != nil {
			return err
		}
	}
	return nil
}

// signalSupervisor passes a person's wish on. A supervisor that was stopped goes
// on: else it would never hear of it.
func (a *Attempt) signalSupervisor(c control, sig syscall.Signal) error {
	p, err := a.supervisor(c)
	if err != nil {
		return err
	}
	if err := p.signal(sig); err != nil {
		return err
	}
	return p.signal(syscall.SIGCONT)
}

// killSupervisor ends a supervisor that does not react to a person's force. Its
// phase is lost then, and what it leaves is ended.
func (a *Attempt) killSupervisor(c control) {
	p, err := a.supervisor(c)
	if err == nil {
		err = p.signal(syscall.SIGKILL)
	}
	a.slog.Error("killed a supervisor that did not react to a person's force", "phase", filepath.Base(c.dir), "pid", p.PID, "err", err)
}

// orphanEnded reports whether the supervisor of a phase whose directory was
// removed while this daemon followed it has ended. It tells of it once: orphan is
// the caller's note of whom to wait for.
func (a *Attempt) orphanEnded(ctx context.Context, c control, orphan **process) (bool, error) {
	if *orphan != nil {
		return !(*orphan).alive(), nil
	}
	p, err := a.findSupervisor(c)
	if err != nil || p == nil {
		return err == nil, err
	}
	*orphan = p
	a.slog.Error("the directory of a running phase was removed: waiting for its end", "dir", c.dir, "pid", p.PID)
	a.Progress(context.WithoutCancel(ctx), c.dir+" was removed while "+filepath.Base(c.dir)+" runs: how it ends will not be known", "")
	return false, nil
}

// supervisor returns who the phase's supervisor is.
func (a *Attempt) supervisor(c control) (process, error) {
	r, err := c.readRecord()
	if err != nil {
		return process{}, err
	}
	boot, err := readBootID(a.cfg.BootIDFile)
	if err != nil {
		return process{}, err
	}
	if r != nil && r.BootID == boot {
		return r.Supervisor, nil
	}
	// One that has a lock and no record yet does not listen yet.
	if _, err := os.Lstat(c.lockPath()); !errors.Is(err, fs.ErrNotExist) {
		return process{}, errors.Join(errNoSupervisor, err)
	}
	p, err := a.findSupervisor(c)
	if err != nil {
		return process{}, err
	}
	if p == nil {
		return process{}, errNoSupervisor
	}
	return *p, nil
}
