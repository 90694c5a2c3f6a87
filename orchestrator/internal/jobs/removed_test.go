package jobs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

// begunRecord waits until a phase's tool runs and returns who runs it.
func (w *world) begunRecord(t *testing.T, phase string) *record {
	t.Helper()
	eventually(t, "the tool runs", func() bool { return len(w.lines(t, "runs")) == 1 })
	r, err := w.control(phase).readRecord()
	if err != nil || r == nil {
		t.Fatalf("read record: %v, %v", r, err)
	}
	return r
}

// remove removes all that the first attempt has in the data directory.
func (w *world) remove(t *testing.T) {
	t.Helper()
	dir := ControlDir(w.Data, w.job().Attempt.ID)
	gone := filepath.Join(w.Scratch, "gone") // at once: somebody writes to it
	if err := os.Rename(dir, gone); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(gone); err != nil {
		t.Fatal(err)
	}
}

// Whether the daemon follows the tool or comes when the directory is gone: the
// tool that runs is waited for, none is started beside it, and its supervisor
// does not stay for ever with a result that nobody can read.
func TestATwinIsNotStartedWhenTheRecordWasRemoved(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		w := newWorld(t)
		w.Phases = []phaseSpec{{Phase: "init", Script: "echo run >>inits"}, {Phase: "play", Script: counted}}
		d := w.startDaemon(t)
		r := w.begunRecord(t, "play")
		if restart {
			crash(t, d)
		}
		w.remove(t)
		if restart {
			w.startDaemon(t)
		}
		time.Sleep(3 * watchFallback) // in which a second one would be started
		if runs, inits := w.lines(t, "runs"), w.lines(t, "inits"); len(runs) != 1 || len(inits) != 1 || !r.Tool.alive() {
			t.Fatalf("restarted %v: the tool ran %d times and the phase before it %d times while the first runs (%v), want once",
				restart, len(runs), len(inits), r.Tool.alive())
		}
		w.touch(t, "go")
		end := w.finished(t)
		if want := "the record of phase "; end.State != orchestrator.JobSucceeded || len(end.Rearmed) != 1 || !strings.HasPrefix(end.Rearmed[0], want) {
			t.Errorf("restarted %v: the job ended as %+v, want success by a second attempt because %s…", restart, end, want)
		}
		if runs := w.lines(t, "runs"); len(runs) != 2 {
			t.Errorf("the tool ran %d times, want twice, one after the other", len(runs))
		}
		if r.Supervisor.alive() {
			t.Error("the first supervisor still lives")
		}
	}
}

func TestCancelReachesATool(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*testing.T, *world, *record){
		"whose record was removed": func(t *testing.T, w *world, _ *record) { w.remove(t) },
		"whose supervisor was stopped": func(t *testing.T, _ *world, r *record) {
			if err := r.Supervisor.signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
		},
		"that was stopped": func(t *testing.T, _ *world, r *record) {
			if err := r.Tool.signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, force := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t)
				script := counted
				if force {
					script = "trap '' TERM; " + counted
				}
				w.Phases = []phaseSpec{{Phase: "play", Script: script, Graceful: true}}
				w.startDaemon(t)
				r := w.begunRecord(t, "play")
				stop(t, w, r)
				if err := w.queue().update(func(r *row) error { r.Cancel, r.Force = true, force; return nil }); err != nil {
					t.Fatal(err)
				}
				end := w.finished(t)
				if end.Outcome == nil || end.Outcome.Code != orchestrator.CodeCancelled || r.Tool.alive() || r.Supervisor.alive() {
					t.Errorf("the job ended as %+v; the tool lives: %v, its supervisor: %v", end, r.Tool.alive(), r.Supervisor.alive())
				}
				if runs := w.lines(t, "runs"); len(runs) != 1 {
					t.Errorf("the tool ran %d times, want once", len(runs))
				}
			})
		}
	}
}

// A tofu whose supervisor and record are both gone is told once, and saves.
func TestAGracefulToolWithoutARecordSavesItsState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Phases = []phaseSpec{{Phase: "apply", Script: saving, Graceful: true}}
	d := w.startDaemon(t)
	eventually(t, "the tool runs", func() bool { return exists(w.scratch("ready")) })
	r := w.begunRecord(t, "apply")
	crash(t, d)
	if err := r.Supervisor.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.remove(t)
	d = w.startDaemon(t)
	eventually(t, "it is told to end", func() bool { return len(w.lines(t, "terms")) == 1 })
	crash(t, d)
	w.startDaemon(t)
	eventually(t, "the second attempt begins", func() bool { return len(w.lines(t, "runs")) == 2 })
	if terms, state := w.lines(t, "terms"), w.lines(t, "state"); len(terms) != 1 || len(state) != 1 {
		t.Errorf("the tool was told %d times and saved %d times, want once each", len(terms), len(state))
	}
	w.touch(t, "go")
	w.finished(t)
}

// A handler that fails before it asks for a tool whose record is gone does not
// cost the tool its state either.
func TestAHandlerThatFailsWithoutARecordKillsNoGracefulTool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Phases = []phaseSpec{{Phase: "apply", Script: saving, Graceful: true}}
	d := w.startDaemon(t)
	eventually(t, "the tool runs", func() bool { return exists(w.scratch("ready")) })
	crash(t, d)
	w.remove(t)
	cfg := w.config(w.queue())
	cfg.Handler = handlerFunc(func(context.Context, *Attempt) (orchestrator.Outcome, error) {
		return orchestrator.Fail(errors.New("the record is gone"), nil), nil
	})
	var end row
	runPool(t, cfg, func() { end = w.finished(t) })
	if end.Outcome == nil || end.Outcome.Message != "the record is gone" {
		t.Errorf("outcome = %+v, want the handler's", end.Outcome)
	}
	if terms, state := w.lines(t, "terms"), w.lines(t, "state"); len(terms) != 1 || len(state) != 1 {
		t.Errorf("the tool was told %d times and saved %d times, want once each", len(terms), len(state))
	}
}

// A supervisor that does not even react to a force is killed, and its tool too.
func TestForceEndsASupervisorThatDoesNotReact(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cfg := w.config(&memQueue{})
	cfg.takeResultAfter = 200 * time.Millisecond
	a, err := NewAttempt(cfg, w.job())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := a.Exec(t.Context(), w.tool(phaseSpec{Phase: "apply", Script: counted, Graceful: true}))
		ended <- err
	}()
	r := w.begunRecord(t, "apply")
	if err := r.Supervisor.signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// Whoever stops it does so again and again.
	deaf := make(chan struct{})
	go func() {
		defer close(deaf)
		for r.Supervisor.signal(syscall.SIGSTOP) == nil {
		}
	}()
	a.force()
	if err := <-ended; !errors.Is(err, ErrLost) && err != nil {
		t.Errorf("error = %v, want a lost phase", err)
	}
	<-deaf
	if r.Tool.alive() {
		t.Error("the tool still runs")
	}
}
