package jobs

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

// counted runs until the file `go` is there and counts itself in `runs`.
const counted = `echo run >>runs; echo begun; while [ ! -e go ]; do sleep 0.02; done; echo over`

func TestAdoptAfterKillOfTheDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Phases = []phaseSpec{{Phase: "init", Script: "echo run >>inits"}, {Phase: "apply", Script: counted}}
	d := w.startDaemon(t)
	eventually(t, "the tool runs", func() bool { return len(w.lines(t, "runs")) == 1 })
	crash(t, d)
	d = w.startDaemon(t)
	crash(t, d) // during recovery
	w.startDaemon(t)
	w.touch(t, "go")
	r := w.finished(t)
	if r.State != orchestrator.JobSucceeded || len(r.Rearmed) > 0 || r.Finishes != 1 {
		t.Errorf("the job ended as %+v, want one success and no new attempt", r)
	}
	if got := w.lines(t, "runs"); len(got) != 1 {
		t.Errorf("the tool ran %d times, want once", len(got))
	}
	if got := w.lines(t, "inits"); len(got) != 1 {
		t.Errorf("the finished phase ran %d times, want once", len(got))
	}
	if log := w.log(t); log != "== init ==\n== apply ==\nbegun\nover\n" {
		t.Errorf("log = %q", log)
	}
}

func TestResultOfATimeWithoutADaemonIsRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Phases = []phaseSpec{{Phase: "apply", Script: counted}}
	d := w.startDaemon(t)
	eventually(t, "the tool runs", func() bool { return len(w.lines(t, "runs")) == 1 })
	crash(t, d)
	w.touch(t, "go")
	eventually(t, "the result is there", func() bool { return exists(w.control("apply").path("result.json")) })
	w.startDaemon(t)
	if r := w.finished(t); r.State != orchestrator.JobSucceeded || len(r.Rearmed) > 0 {
		t.Errorf("the job ended as %+v, want the recorded success", r)
	}
	if got := w.lines(t, "runs"); len(got) != 1 {
		t.Errorf("the tool ran %d times, want once", len(got))
	}
}

func TestOrderlyShutdownLeavesTheToolAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Phases = []phaseSpec{{Phase: "apply", Script: counted}}
	d := w.startDaemon(t)
	eventually(t, "the tool runs", func() bool { return len(w.lines(t, "runs")) == 1 })
	if err := d.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := d.Wait(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("the daemon took %s to end, want no wait for the tool", took)
	}
	if r, err := w.queue().read(); err != nil || r.State != orchestrator.JobRunning {
		t.Errorf("the job is %s (%v), want running", r.State, err)
	}
	w.startDaemon(t)
	w.touch(t, "go")
	if r := w.finished(t); r.State != orchestrator.JobSucceeded || r.Crashes > 0 {
		t.Errorf("the job ended as %+v, want success without a crash attempt", r)
	}
	if got := w.lines(t, "runs"); len(got) != 1 {
		t.Errorf("the tool ran %d times, want once", len(got))
	}
}

func TestNothingLeftAliveIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Phases = []phaseSpec{{Phase: "play", Script: counted}}
	d := w.startDaemon(t)
	eventually(t, "the tool runs", func() bool { return len(w.lines(t, "runs")) == 1 })
	r, err := w.control("play").readRecord()
	if err != nil || r == nil {
		t.Fatalf("read record: %v, %v", r, err)
	}
	crash(t, d)
	_ = r.Supervisor.signal(syscall.SIGKILL)
	_ = r.Tool.signal(syscall.SIGKILL)
	w.touch(t, "go") // for the second attempt
	w.startDaemon(t)
	end := w.finished(t)
	if end.State != orchestrator.JobSucceeded || end.Crashes != 1 || len(end.Rearmed) != 1 {
		t.Errorf("the job ended as %+v, want success by a second attempt", end)
	}
	if want := "the supervisor of phase play ended without a result"; len(end.Rearmed) == 1 && end.Rearmed[0] != want {
		t.Errorf("re-armed because %q, want %q", end.Rearmed[0], want)
	}
	if got := w.lines(t, "runs"); len(got) != 2 {
		t.Errorf("the tool ran %d times, want twice", len(got))
	}
}

// saving is like tofu: told to end it takes its time and saves; told twice it
// exits at once.
const saving = `n=0
trap 'n=$((n+1)); echo term >>terms; [ $n -gt 1 ] && exit 2' TERM
echo run >>runs; touch ready
while [ $n -eq 0 ] && [ ! -e go ]; do sleep 0.02; done
i=0; while [ $i -lt 20 ]; do sleep 0.02; i=$((i+1)); done
echo saved >>state; exit 1`

func TestGracefulToolWithoutSupervisorSavesItsState(t *testing.T) {
	t.Parallel()
	for _, daemonToo := range []bool{false, true} {
		t.Run(fmt.Sprintf("daemon killed too: %v", daemonToo), func(t *testing.T) {
			w := newWorld(t)
			w.Phases = []phaseSpec{{Phase: "apply", Script: saving, Graceful: true}}
			d := w.startDaemon(t)
			eventually(t, "the tool runs", func() bool { return len(w.lines(t, "runs")) == 1 })
			r, err := w.control("apply").readRecord()
			if err != nil || r == nil {
				t.Fatalf("read record: %v, %v", r, err)
			}
			if daemonToo {
				crash(t, d)
			}
			if err := r.Supervisor.signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if daemonToo {
				if !r.Tool.alive() {
					t.Fatal("the tool died with its supervisor")
				}
				// A daemon that dies while it waits must not tell it twice.
				d = w.startDaemon(t)
				eventually(t, "it is told to end", func() bool { return len(w.lines(t, "terms")) == 1 })
				crash(t, d)
				w.startDaemon(t)
			}
			eventually(t, "the second attempt begins", func() bool { return len(w.lines(t, "runs")) == 2 })
			if got := w.lines(t, "state"); len(got) != 1 {
				t.Errorf("the state was saved %d times before the next attempt, want once", len(got))
			}
			if got := w.lines(t, "terms"); len(got) != 1 {
				t.Errorf("the tool was told %d times to end, want once", len(got))
			}
			w.touch(t, "go")
			if end := w.finished(t); end.Crashes != 1 {
				t.Errorf("the job ended as %+v, want one crash attempt", end)
			}
		})
	}
}

// TestLong… kills more often.
func TestLockedBeforeFork(t *testing.T) { lockedBeforeFork(t, 15) }

// lockedBeforeFork: a daemon that dies at any moment around the fork must leave
// either a locked phase or one in which nothing ran.
func lockedBeforeFork(t *testing.T, kills int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, uint64(kills)))
	stages := map[string]int{}
	for range kills {
		w := newWorld(t)
		w.touch(t, "go")
		w.Phases = []phaseSpec{{Phase: "apply", Script: counted}}
		d := w.startDaemon(t)
		c := w.control("apply")
		for end := time.Now().Add(20 * time.Second); !exists(c.lockPath()) && time.Now().Before(end); {
			time.Sleep(50 * time.Microsecond)
		}
		time.Sleep(time.Duration(rng.IntN([]int{2_000, 50_000, 500_000}[rng.IntN(3)])) * time.Microsecond)
		crash(t, d)
		stage := stageOf(c)
		stages[stage]++
		w.startDaemon(t)
		// With a lock only, it may not even have been announced.
		if r := w.finished(t); r.State != orchestrator.JobSucceeded || len(r.Rearmed) > 0 && stage != "a lock only" {
			t.Fatalf("the job ended as %+v, want success in the first attempt", r)
		}
		if got := w.lines(t, "runs"); len(got) != 1 {
			t.Fatalf("the tool ran %d times, want once", len(got))
		}
	}
	t.Logf("the daemon was killed with: %v", stages)
}

func stageOf(c control) string {
	switch {
	case exists(c.path("result.json")):
		return "a result"
	case exists(c.path("process.json")):
		return "a record"
	default:
		return "a lock only"
	}
}

func TestWorkOfTheDaemonItselfIsRearmedAfterACrash(t *testing.T) {
	t.Parallel()
	for _, clean := range []bool{false, true} {
		w := newWorld(t)
		q := w.queue()
		if err := q.update(func(r *row) error { r.State = orchestrator.JobRunning; return nil }); err != nil {
			t.Fatal(err)
		}
		cfg := w.config(q)
		cfg.Handler, cfg.CleanStop = w, clean
		runPool(t, cfg, func() { w.finished(t) })
		r, err := q.read()
		if err != nil {
			t.Fatal(err)
		}
		// After an orderly stop the same attempt goes on: its deadline stands.
		want := 1
		if clean {
			want = 0
		}
		if len(r.Rearmed) != want || r.Crashes != want || r.Finishes != 1 {
			t.Errorf("after a clean stop (%v) the job is %+v, want %d crash attempts", clean, r, want)
		}
		if left, _ := filepath.Glob(filepath.Join(w.Runtime, "work", "*")); len(left) > 0 {
			t.Errorf("work directories are left: %v", left)
		}
	}
}

// A standalone job has no attempt after this one: it goes on itself, but not for
// ever.
func TestAStandaloneJobIsBegunAgainWhereNoToolWas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Kind = orchestrator.JobPlaybookRun
	q := w.queue()
	if err := q.update(func(r *row) error { r.State = orchestrator.JobRunning; return nil }); err != nil {
		t.Fatal(err)
	}
	cfg := w.config(q)
	cfg.Handler = w
	a := newAttempt(cfg, w.job(), nil)
	for n := range orchestrator.MaxCrashes - 2 {
		if !a.mayBeginAgain() {
			t.Fatalf("crash %d ends it, want %d", n+1, orchestrator.MaxCrashes)
		}
	}
	runPool(t, cfg, func() { w.finished(t) })
	if r, err := q.read(); err != nil || r.State != orchestrator.JobSucceeded || len(r.Rearmed) > 0 || r.Finishes != 1 {
		t.Errorf("the job is %+v (%v), want its one attempt to succeed", r, err)
	}
	if a.mayBeginAgain() {
		t.Errorf("crash %d does not end it", orchestrator.MaxCrashes)
	}
}

func TestStaleWorkDirectoriesAreRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stale := filepath.Join(w.Runtime, "work", "gone1234")
	if err := os.MkdirAll(stale, 0o700); err != nil {
		t.Fatal(err)
	}
	cfg := w.config(w.queue())
	cfg.Handler = w
	runPool(t, cfg, func() { w.finished(t) })
	if exists(stale) {
		t.Error("the work directory of an attempt that nobody knows is still there")
	}
}

func TestSupervisorInheritsNothingFromTheDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// What whoever started the daemon left open must not reach tools.
	f, err := os.Create(w.scratch("open"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, _, e := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_SETFD, 0); e != 0 {
		t.Fatal(e)
	}
	tool := w.tool(phaseSpec{Phase: "play", Script: `for f in /proc/$$/fd/*; do readlink $f; done; env`})
	tool.KeepStdout = true
	r, err := w.attempt(t).Exec(t.Context(), tool)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(r.StdoutPath)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(string(b)), "\n")
	slices.Sort(got)
	want := []string{"/dev/null", r.StdoutPath, r.StdoutPath, AttemptEnv + "=" + w.token().Reveal(),
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "PWD=" + w.Scratch}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the tool has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
