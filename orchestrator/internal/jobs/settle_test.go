package jobs

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// A handler that fails before it asks for the tool that an earlier daemon
// started must not cost the tool its state, nor anybody the knowledge of how it
// ended: the handler is asked once more, and starts nothing then.
func TestHandlerThatFailsIsAskedOnceMoreHowItsToolEnded(t *testing.T) {
	t.Parallel()
	for name, supervised := range map[string]bool{"supervised": true, "without a supervisor": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Phases = []phaseSpec{{Phase: "apply", Script: saving, Graceful: true}}
			d := w.startDaemon(t)
			eventually(t, "the tool runs", func() bool { return exists(w.scratch("ready")) })
			r, err := w.control("apply").readRecord()
			if err != nil || r == nil {
				t.Fatalf("read record: %v, %v", r, err)
			}
			crash(t, d)
			if !supervised {
				if err := r.Supervisor.signal(syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			cfg := w.config(w.queue())
			calls := 0
			cfg.Handler = handlerFunc(func(ctx context.Context, a *Attempt) (orchestrator.Outcome, error) {
				if calls++; calls == 1 {
					return orchestrator.Outcome{}, errors.New("ansible is missing")
				}
				res, err := a.Exec(ctx, w.tool(w.Phases[0]))
				if res.Cancelled {
					t.Error("nobody asked for the end, and it reads as cancelled")
				}
				if supervised && (err != nil || res.ExitCode != 1) || !supervised && !errors.Is(err, ErrLost) {
					t.Errorf("the tool ended as %+v, %v", res, err)
				}
				if _, err := a.Exec(ctx, w.tool(phaseSpec{Phase: "more", Script: "echo more >>runs"})); err == nil || err.Error() != "ansible is missing" {
					t.Errorf("error = %v, want why the attempt is over", err)
				}
				return orchestrator.Fail(errors.New("compared"), nil), nil
			})
			var end row
			runPool(t, cfg, func() { end = w.finished(t) })
			if end.Outcome == nil || end.Outcome.Message != "ansible is missing; compared" {
				t.Errorf("outcome = %+v, want what went wrong and what was found", end.Outcome)
			}
			if runs, terms, state := w.lines(t, "runs"), w.lines(t, "terms"), w.lines(t, "state"); len(runs) != 1 || len(terms) != 1 || len(state) != 1 {
				t.Errorf("the tool ran %d times, was told %d times and saved %d times, want once each", len(runs), len(terms), len(state))
			}
		})
	}
}

// A handler that is called again after a crash asks only for what it needs, and
// fails when it knows enough: neither is a reason to ask it again.
func TestHandlerNeedNotAskForWhatWasOverWhenItBegan(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		w := newWorld(t)
		w.Phases = []phaseSpec{{Phase: "plan", Script: "exit 0"}, {Phase: "apply", Script: counted}}
		d := w.startDaemon(t)
		eventually(t, "the second tool runs", func() bool { return exists(w.scratch("runs")) })
		crash(t, d)
		cfg := w.config(w.queue())
		calls := 0
		cfg.Handler = handlerFunc(func(ctx context.Context, a *Attempt) (orchestrator.Outcome, error) {
			calls++
			w.touch(t, "go")
			if _, err := a.Exec(ctx, w.tool(w.Phases[1])); err != nil {
				return orchestrator.Outcome{}, err
			}
			if fails {
				return orchestrator.Outcome{}, errors.New("no host")
			}
			return orchestrator.Fail(errors.New("no host"), nil), nil
		})
		var end row
		runPool(t, cfg, func() { end = w.finished(t) })
		if calls != 1 || end.Outcome == nil || end.Outcome.Message != "no host" {
			t.Errorf("called %d times, outcome = %+v; want once, and the handler's own word", calls, end.Outcome)
		}
	}
}

func TestForceIsHeardWhileToolsAreWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	q := w.queue()
	cfg := w.config(q)
	failed := make(chan struct{})
	cfg.Handler = handlerFunc(func(ctx context.Context, a *Attempt) (orchestrator.Outcome, error) {
		tool := w.tool(phaseSpec{Phase: "apply", Graceful: true, Script: `trap '' TERM; echo ready; while :; do sleep 0.1; done`})
		tool.KeepStdout = true
		tool.OnStdout = func([]byte) {
			if !isClosed(failed) {
				close(failed)
			}
			panic("at the first line")
		}
		_, err := a.Exec(ctx, tool)
		return orchestrator.Outcome{}, err
	})
	runPool(t, cfg, func() {
		<-failed
		if err := q.update(func(r *row) error { r.Cancel, r.Force = true, true; return nil }); err != nil {
			t.Error(err)
		}
		w.finished(t)
	})
}

// What somebody sends to everything, as a machine does that shuts down, is no
// wish of a person about this job, and the tool gets it once.
func TestSIGTERMOfSomebodyElseIsNoCancellation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	go func() {
		eventually(t, "the tool runs", func() bool { return exists(w.scratch("ready")) })
		r, err := w.control("apply").readRecord()
		if err != nil || r == nil {
			t.Errorf("read record: %v, %v", r, err)
			return
		}
		told := func() bool { return exists(w.control("apply").path("terminated")) }
		_ = r.Supervisor.signal(syscall.SIGTERM)
		eventually(t, "the supervisor has heard it", func() bool {
			b, _ := os.ReadFile(w.control("apply").logPath())
			return told() || strings.Contains(string(b), "ignored a signal")
		})
		if told() {
			t.Error("the supervisor passed it on")
		}
		_ = r.Tool.signal(syscall.SIGTERM)
	}()
	res, err := w.attempt(t).Exec(t.Context(), w.tool(phaseSpec{Phase: "apply", Script: saving, Graceful: true}))
	if err != nil || res.Cancelled || res.ExitCode != 1 {
		t.Errorf("result = %+v, %v, want the tool's own end", res, err)
	}
	if terms, state := w.lines(t, "terms"), w.lines(t, "state"); len(terms) != 1 || len(state) != 1 {
		t.Errorf("the tool was told %d times and saved %d times, want once", len(terms), len(state))
	}
}

// logged collects what is logged.
type logged struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *logged) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *logged) has(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.b.String(), text)
}

// A lock that cannot be looked at for a while is no end of a live tool, neither
// for who waits for it nor for who comes to adopt it.
func TestPassingErrorsDoNotAbandonATool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.attempt(t)
	log := &logged{}
	a.slog = slog.New(slog.NewTextHandler(log, nil))
	b := w.attempt(t)
	b.slog = a.slog
	c := w.control("play")
	done := make(chan error, 2)
	exec := func(a *Attempt) {
		_, err := a.Exec(t.Context(), w.tool(phaseSpec{Phase: "play", Script: `echo run >>runs; touch ready; while [ ! -e go ]; do sleep 0.02; done`}))
		done <- err
	}
	go exec(a)
	eventually(t, "the tool runs", func() bool { return exists(w.scratch("ready")) })
	if err := os.Rename(c.lockPath(), c.path("aside")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("lock", c.lockPath()); err != nil { // to itself: it cannot be opened
		t.Fatal(err)
	}
	go exec(b)
	eventually(t, "both have looked in vain", func() bool {
		return len(done) > 0 || log.has("look at a running phase") && log.has("look at a phase")
	})
	if err := os.Rename(c.path("aside"), c.lockPath()); err != nil {
		t.Fatal(err)
	}
	w.touch(t, "go")
	for range 2 {
		if err := <-done; err != nil {
			t.Errorf("given up on a live tool: %v", err)
		}
	}
	if got := w.lines(t, "runs"); len(got) != 1 {
		t.Errorf("the tool ran %d times, want once", len(got))
	}
}

func TestLinesThatCannotBeReadFailNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.attempt(t)
	if err := os.MkdirAll(w.control("play").eventsPath(), 0o700); err != nil { // a directory
		t.Fatal(err)
	}
	tool := w.tool(phaseSpec{Phase: "play", Script: "sleep 0.3"})
	tool.OnEvent = func([]byte) {}
	if r, err := a.Exec(t.Context(), tool); err != nil || !r.Succeeded() {
		t.Errorf("result = %+v, %v, want success", r, err)
	}
}
