package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

// TestMain makes the test binary every executable that a job needs.
func TestMain(m *testing.M) {
	if code, ok := Entry(os.Args); ok {
		os.Exit(code)
	}
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "test-daemon":
			os.Exit(daemonMain(os.Args[2]))
		case "test-master":
			os.Exit(masterMain(os.Args[2], os.Args[3]))
		}
	}
	remove := func() {}
	if raceEnabled {
		executable, remove = buildPlain()
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		remove()
		os.Exit(code)
	}))
}

// executable is this test binary as the tests execute it: the supervisor, the
// shim and the test daemon.
var executable = "/proc/self/exe"

// buildPlain builds this test binary without the race detector, which makes each
// of the hundreds of processes that these tests start many times as dear. What
// runs in the test's own process stays under it.
func buildPlain() (path string, remove func()) {
	dir, err := os.MkdirTemp("", "jobs")
	if err == nil {
		path = filepath.Join(dir, "jobs.test")
		cmd := exec.Command("go", "test", "-c", "-vet=off", "-o", path, ".")
		cmd.Stderr = os.Stderr
		err = cmd.Run()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "build the test binary without the race detector: %v\n", err)
		os.Exit(1)
	}
	return path, func() { _ = os.RemoveAll(dir) }
}

// world is the directories of one test and what its daemon is to do. It is
// also the test daemon's configuration.
type world struct {
	Data, Runtime, Scratch string
	Phases                 []phaseSpec
	NoCgroups              bool
	Kind                   orchestrator.JobKind // empty: a step
}

// phaseSpec is a tool of the test daemon: a script for /bin/sh.
type phaseSpec struct {
	Phase, Script string
	Graceful      bool
}

const testToken = "token-0123456789abcdef-"

func newWorld(t *testing.T) *world {
	t.Helper()
	// Short, for the sockets.
	dir, err := os.MkdirTemp("", "jobs")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Data: filepath.Join(dir, "d"), Runtime: filepath.Join(dir, "r"), Scratch: filepath.Join(dir, "s")}
	for _, d := range []string{w.Data, w.Runtime, w.Scratch} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		w.noLeftovers(t)
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return w
}

// token is unique per test, so that tests never see each other's processes.
func (w *world) token() orchestrator.Secret {
	return orchestrator.NewSecret(testToken + filepath.Base(filepath.Dir(w.Data)))
}

// noLeftovers fails the test where a process of it is left, and ends it.
func (w *world) noLeftovers(t *testing.T) {
	t.Helper()
	s := sweeper{token: w.token().Reveal(), workDir: w.Runtime}
	// A supervisor that has left its result is about to end.
	eventually(t, "no supervisor is left", func() bool {
		locks, _ := filepath.Glob(filepath.Join(w.Data, "control", "*", "*", "lock"))
		for _, l := range locks {
			if free, err := (control{filepath.Dir(l)}).lockFree(); err != nil || !free {
				return false
			}
		}
		return true
	})
	left, err := s.left()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range left {
		cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
		t.Errorf("process %d is left: %q", p.PID, strings.ReplaceAll(string(cmd), "\x00", " "))
		_ = p.signal(syscall.SIGKILL)
	}
	if own, err := ownCgroup(); err == nil {
		if groups, _ := filepath.Glob(filepath.Join(own, "exocomp-"+string(w.job().Attempt.ID)+"-*")); len(groups) > 0 {
			t.Errorf("cgroups are left: %v", groups)
		}
	}
}

func (w *world) job() orchestrator.Job {
	if w.Kind != "" {
		return orchestrator.Job{
			ID: "job_1", Kind: w.Kind, State: orchestrator.JobQueued,
			Attempt: orchestrator.Attempt{Number: 1, ID: w.attemptID(1), Token: w.token()},
		}
	}
	return orchestrator.Job{
		ID: "job_1", Kind: orchestrator.JobStep, StepKind: orchestrator.StepTofuApply, State: orchestrator.JobQueued,
		Attempt: orchestrator.Attempt{Number: 1, ID: w.attemptID(1), Token: w.token()},
	}
}

// attemptID is unique per test: cgroups are named by it.
func (w *world) attemptID(n int) orchestrator.AttemptID {
	base := filepath.Base(filepath.Dir(w.Data))
	return orchestrator.AttemptID(fmt.Sprintf("%.7s%d", base[max(0, len(base)-7):], n))
}

func (w *world) control(phase string) control {
	return control{filepath.Join(ControlDir(w.Data, w.job().Attempt.ID), phase)}
}

func (w *world) scratch(name string) string { return filepath.Join(w.Scratch, name) }

// lines returns the lines of a scratch file, none where it is missing.
func (w *world) lines(t *testing.T, name string) []string {
	t.Helper()
	b, err := os.ReadFile(w.scratch(name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Fields(string(b))
}

func (w *world) touch(t *testing.T, name string) {
	t.Helper()
	if err := os.WriteFile(w.scratch(name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (w *world) log(t *testing.T) string {
	t.Helper()
	l, err := OpenLog(w.Data, w.job().Attempt.ID)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for buf, off := make([]byte, 1<<20), int64(0); ; {
		n, next, err := l.Read(buf, off)
		if err != nil {
			return b.String()
		}
		b.Write(buf[:n])
		off = next
	}
}

// eventually polls: what it waits for happens in other processes.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("%s: not within a minute", what)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// tool returns a script as a tool, with the scratch directory as its own.
func (w *world) tool(p phaseSpec) Tool {
	return Tool{
		Phase: p.Phase, Argv: []string{"/bin/sh", "-c", p.Script}, Dir: w.Scratch,
		Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, Graceful: p.Graceful,
	}
}

func (w *world) config(q Queue) Config {
	return Config{
		Queue: q, DataDir: w.Data, RuntimeDir: w.Runtime, noCgroups: w.NoCgroups, SelfExe: executable,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	}
}

// attempt returns an attempt without a pool.
func (w *world) attempt(t *testing.T) *Attempt {
	t.Helper()
	a, err := NewAttempt(w.config(&memQueue{}), w.job())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// memQueue is a queue in which every call succeeds.
type memQueue struct {
	mu     sync.Mutex
	phases []string
}

func (q *memQueue) ClaimJob(context.Context) (*orchestrator.Job, error) { return nil, nil }

func (q *memQueue) SetPhase(_ context.Context, _ orchestrator.JobID, _ orchestrator.Secret, phase string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.phases = append(q.phases, phase)
	return nil
}

func (q *memQueue) FinishJob(context.Context, orchestrator.JobID, orchestrator.Secret, orchestrator.Outcome) (orchestrator.Job, error) {
	return orchestrator.Job{}, nil
}

func (q *memQueue) InterruptJob(context.Context, orchestrator.JobID, orchestrator.Secret, string, bool) (orchestrator.Job, error) {
	return orchestrator.Job{}, nil
}
func (q *memQueue) RunningJobs(context.Context) ([]orchestrator.Job, error) { return nil, nil }

func (q *memQueue) Job(context.Context, orchestrator.JobID) (orchestrator.Job, error) {
	return orchestrator.Job{}, nil
}
func (q *memQueue) Adopted(context.Context, orchestrator.JobID, string) error          { return nil }
func (q *memQueue) Progress(context.Context, orchestrator.JobID, string, string) error { return nil }
func (q *memQueue) Draining(context.Context) (bool, error)                             { return false, nil }
func (q *memQueue) Changed() <-chan struct{}                                           { return nil }

// fileQueue is a queue of one job in a file, which outlives its daemon and
// which a test may look at and change.
type fileQueue struct {
	path string
	w    *world

	mu      sync.Mutex
	changed chan struct{}
}

// row is the job in the file.
type row struct {
	State         orchestrator.JobState
	Attempt       int
	Phase         string
	Cancel, Force bool
	Drain         bool
	Outcome       *orchestrator.Failure
	Rearmed       []string // reasons
	Crashes       int
	Finishes      int
}

func (w *world) queue() *fileQueue {
	return &fileQueue{path: filepath.Join(w.Data, "queue.json"), w: w, changed: make(chan struct{})}
}

func (q *fileQueue) read() (r row, err error) {
	err = readJSON(q.path, &r)
	if os.IsNotExist(err) {
		return row{State: orchestrator.JobQueued, Attempt: 1}, nil
	}
	return r, err
}

// update changes the row under a lock that holds between processes.
func (q *fileQueue) update(fn func(*row) error) error {
	lock, err := os.OpenFile(q.path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	r, err := q.read()
	if err != nil {
		return err
	}
	if err := fn(&r); err != nil {
		return err
	}
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return durable.WriteFile(q.path, b, 0o600)
}

func (q *fileQueue) job(r row) orchestrator.Job {
	j := q.w.job()
	j.State, j.Phase, j.CancelRequested, j.CancelForce = r.State, r.Phase, r.Cancel, r.Force
	j.Attempt.Number, j.Attempt.ID = r.Attempt, q.w.attemptID(r.Attempt)
	return j
}

func (q *fileQueue) ClaimJob(context.Context) (job *orchestrator.Job, err error) {
	err = q.update(func(r *row) error {
		if r.State == orchestrator.JobQueued && !r.Drain {
			r.State = orchestrator.JobRunning
			j := q.job(*r)
			job = &j
		}
		return nil
	})
	return job, err
}

func (q *fileQueue) SetPhase(_ context.Context, _ orchestrator.JobID, _ orchestrator.Secret, phase string) error {
	return q.update(func(r *row) error { r.Phase = phase; return nil })
}

func (q *fileQueue) FinishJob(_ context.Context, _ orchestrator.JobID, _ orchestrator.Secret, o orchestrator.Outcome) (orchestrator.Job, error) {
	return orchestrator.Job{}, q.update(func(r *row) error {
		r.State, r.Outcome = orchestrator.JobSucceeded, o.Failure
		if o.Failure != nil {
			r.State = orchestrator.JobFailed
		}
		r.Finishes++
		return nil
	})
}

func (q *fileQueue) InterruptJob(_ context.Context, _ orchestrator.JobID, _ orchestrator.Secret, reason string, crash bool) (orchestrator.Job, error) {
	return orchestrator.Job{}, q.update(func(r *row) error {
		r.State, r.Phase, r.Rearmed = orchestrator.JobQueued, "", append(r.Rearmed, reason)
		r.Attempt++
		if crash {
			r.Crashes++
		}
		return nil
	})
}

func (q *fileQueue) RunningJobs(context.Context) ([]orchestrator.Job, error) {
	r, err := q.read()
	if err != nil || r.State != orchestrator.JobRunning {
		return nil, err
	}
	return []orchestrator.Job{q.job(r)}, nil
}

func (q *fileQueue) Job(context.Context, orchestrator.JobID) (orchestrator.Job, error) {
	r, err := q.read()
	return q.job(r), err
}

func (q *fileQueue) Adopted(context.Context, orchestrator.JobID, string) error          { return nil }
func (q *fileQueue) Progress(context.Context, orchestrator.JobID, string, string) error { return nil }

func (q *fileQueue) Draining(context.Context) (bool, error) {
	r, err := q.read()
	return r.Drain, err
}

func (q *fileQueue) Changed() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.changed
}

// run closes the channel of Changed whenever the file changes.
func (q *fileQueue) run(ctx context.Context) {
	w := watch(filepath.Dir(q.path))
	defer w.close()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-w.changes:
		case <-w.tick():
		}
		q.mu.Lock()
		close(q.changed)
		q.changed = make(chan struct{})
		q.mu.Unlock()
	}
}

// daemonMain is the test daemon: a pool on a file, until SIGTERM.
func daemonMain(config string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var w world
	if err := json.Unmarshal([]byte(config), &w); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	q := w.queue()
	go q.run(ctx)
	cfg := w.config(q)
	cfg.Handler = &w
	if err := New(cfg).Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Handle runs the phases of the world, each of which must succeed.
func (w *world) Handle(ctx context.Context, a *Attempt) (orchestrator.Outcome, error) {
	for _, p := range w.Phases {
		r, err := a.Exec(ctx, w.tool(p))
		if err != nil {
			return orchestrator.Outcome{}, err
		}
		if r.Cancelled {
			return orchestrator.Fail(ErrCancelled, nil), nil
		}
		if !r.Succeeded() {
			return orchestrator.Fail(orchestrator.Errorf(orchestrator.CodeFailed, "%s: exit %d %s", p.Phase, r.ExitCode, r.Signal), nil), nil
		}
	}
	return orchestrator.Outcome{}, nil
}

// startDaemon starts a test daemon. It is ended with the test at the latest.
func (w *world) startDaemon(t *testing.T) *exec.Cmd {
	t.Helper()
	config, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(executable, "test-daemon", string(config))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// crash ends a daemon as a kill -9 does.
func crash(t *testing.T, daemon *exec.Cmd) {
	t.Helper()
	if err := daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = daemon.Wait()
}

// finished waits for the job's final state.
func (w *world) finished(t *testing.T) row {
	t.Helper()
	var r row
	eventually(t, "the job ends", func() bool {
		var err error
		r, err = w.queue().read()
		return err == nil && r.State.Final()
	})
	return r
}
