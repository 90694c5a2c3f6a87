package jobs

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// runPool runs a pool on its file queue until body returns.
func runPool(t *testing.T, cfg Config, body func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	watched := make(chan struct{})
	go func() { defer close(watched); cfg.Queue.(interface{ run(context.Context) }).run(ctx) }()
	go func() { done <- New(cfg).Run(ctx) }()
	body()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	<-watched
}

type handlerFunc func(context.Context, *Attempt) (orchestrator.Outcome, error)

func (f handlerFunc) Handle(ctx context.Context, a *Attempt) (orchestrator.Outcome, error) {
	return f(ctx, a)
}

func TestPanicOfAHandlerFailsItsJobAndLeavesNoTool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cfg := w.config(w.queue())
	cfg.Handler = handlerFunc(func(ctx context.Context, a *Attempt) (orchestrator.Outcome, error) {
		tool := w.tool(phaseSpec{Phase: "play", Script: `echo x >&$EXOCOMP_EVENTS_FD; exec sleep 100`})
		tool.Events = true
		tool.OnEvent = func([]byte) { panic("at the first event") }
		_, err := a.Exec(ctx, tool)
		return orchestrator.Outcome{}, err
	})
	var r row
	runPool(t, cfg, func() { r = w.finished(t) })
	if r.Outcome == nil || r.Outcome.Code != orchestrator.CodeInternal || !strings.Contains(r.Outcome.Message, "at the first event") {
		t.Errorf("outcome = %+v, want an internal failure with the panic", r.Outcome)
	}
}

func TestCancelEndsTheDaemonsOwnWork(t *testing.T) {
	t.Parallel()
	for _, said := range []error{context.Canceled, errors.New("signal: terminated")} { // as libraries would
		w := newWorld(t)
		q := w.queue()
		cfg := w.config(q)
		begun := make(chan struct{})
		cfg.Handler = handlerFunc(func(ctx context.Context, a *Attempt) (orchestrator.Outcome, error) {
			close(begun)
			<-ctx.Done()
			return orchestrator.Outcome{}, said
		})
		var r row
		runPool(t, cfg, func() {
			<-begun
			if err := q.update(func(r *row) error { r.Cancel = true; return nil }); err != nil {
				t.Error(err)
			}
			r = w.finished(t)
		})
		if r.Outcome == nil || r.Outcome.Code != orchestrator.CodeCancelled {
			t.Errorf("outcome = %+v, want cancelled", r.Outcome)
		}
	}
}

func TestShutdownRecordsNoFailure(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func() (orchestrator.Outcome, error){
		"an error":   func() (orchestrator.Outcome, error) { return orchestrator.Outcome{}, errors.New("interrupted") },
		"an outcome": func() (orchestrator.Outcome, error) { return orchestrator.Fail(errors.New("interrupted"), nil), nil },
	} {
		w := newWorld(t)
		q := w.queue()
		cfg := w.config(q)
		begun := make(chan struct{})
		cfg.Handler = handlerFunc(func(ctx context.Context, a *Attempt) (orchestrator.Outcome, error) {
			close(begun)
			<-ctx.Done()
			return end()
		})
		runPool(t, cfg, func() { <-begun })
		if r, err := q.read(); err != nil || r.State != orchestrator.JobRunning || len(r.Rearmed) > 0 {
			t.Errorf("%s: the job is %+v (%v), want it as it was", name, r, err)
		}
	}
}

// flakyQueue fails to record outcomes until it has been asked enough.
type flakyQueue struct {
	*fileQueue
	fails atomic.Int32
	err   error
}

func (q *flakyQueue) FinishJob(ctx context.Context, id orchestrator.JobID, token orchestrator.Secret, o orchestrator.Outcome) (orchestrator.Job, error) {
	if q.fails.Add(-1) >= 0 {
		return orchestrator.Job{}, q.err
	}
	return q.fileQueue.FinishJob(ctx, id, token, o)
}

func TestOutcomeIsRecordedWhenTheDiskHasRoomAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	q := &flakyQueue{fileQueue: w.queue(), err: errors.New("database or disk is full")}
	q.fails.Store(2)
	cfg := w.config(q)
	cfg.Handler = w
	var r row
	runPool(t, cfg, func() { r = w.finished(t) })
	if r.State != orchestrator.JobSucceeded || r.Finishes != 1 {
		t.Errorf("the job is %+v, want its outcome recorded", r)
	}
}

func TestOutcomeThatTheLedgerNeverTakesIsABareFailure(t *testing.T) {
	t.Parallel()
	for _, refusals := range []int32{1, 2} {
		w := newWorld(t)
		q := &flakyQueue{fileQueue: w.queue(), err: orchestrator.Errorf(orchestrator.CodeInvalid, "CHECK constraint failed")}
		q.fails.Store(refusals)
		cfg := w.config(q)
		cfg.Handler = w
		var r row
		runPool(t, cfg, func() { r = w.finished(t) })
		if r.Outcome == nil || r.Outcome.Code != orchestrator.CodeInternal || !strings.Contains(r.Outcome.Message, "CHECK constraint failed") {
			t.Errorf("outcome = %+v, want an internal failure that says why", r.Outcome)
		}
	}
}

func TestOutcomeOfAnotherAttemptIsDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	q := &flakyQueue{fileQueue: w.queue(), err: orchestrator.Errorf(orchestrator.CodeConflict, "not the live attempt")}
	q.fails.Store(1)
	cfg := w.config(q)
	cfg.Handler = w
	runPool(t, cfg, func() {
		eventually(t, "the work directory is removed", func() bool {
			return q.fails.Load() <= 0 && !exists(workDir(w.Runtime, w.job().Attempt.ID))
		})
	})
	if r, err := q.read(); err != nil || r.Finishes != 0 {
		t.Errorf("the job is %+v (%v), want nothing recorded", r, err)
	}
}

func TestRuntimeDirectoryThatIsTooLongIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cfg := w.config(w.queue())
	cfg.RuntimeDir = "/run/" + strings.Repeat("x", 60)
	err := New(cfg).Run(t.Context())
	if orchestrator.CodeOf(err) != orchestrator.CodeInvalid || !strings.Contains(err.Error(), "3 bytes too long") {
		t.Errorf("error = %v, want one that names the length", err)
	}
}

// A job that waits for another one lends its worker: the pool looks for a job at
// once, and has as many workers as before when it is given back.
func TestAWaitingJobLendsItsWorker(t *testing.T) {
	p := New(Config{Workers: 1})
	p.active = 1
	if p.idle() {
		t.Fatal("the one worker is busy and idle")
	}
	back := p.Lend()
	select {
	case <-p.free:
	default:
		t.Error("the pool was not woken")
	}
	if !p.idle() {
		t.Error("the lent worker is not there")
	}
	p.active = 2
	if p.idle() {
		t.Error("one worker was lent to two jobs")
	}
	p.active = 1
	back()
	back() // once more changes nothing
	if p.idle() || p.lent != 0 {
		t.Errorf("after it was given back: idle %v, %d lent", p.idle(), p.lent)
	}
}
