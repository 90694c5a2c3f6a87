// Package steptest holds the handlers of the steps to what the queue asks of
// them ([jobs.Handler]): whenever the daemon goes, a person cancels or the
// machine dies, the handler says so, and whenever it is called again for the
// same attempt nothing runs twice.
package steptest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
)

// Main is the TestMain of a package that calls [Run]: it makes the test binary
// the supervisor of its own tools.
func Main(m *testing.M) {
	if code, ok := jobs.Entry(os.Args); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// Suite is a handler under test.
type Suite struct {
	Kind orchestrator.StepKind
	// Phase is the one that [Site.Hold] stops in; empty for a handler without
	// tools.
	Phase string
	// New makes the handler of a site. Its job must succeed there.
	New func(t *testing.T, s *Site) jobs.Handler
}

// Run runs the suite.
func Run(t *testing.T, suite Suite) {
	t.Run("done once", suite.doneOnce)
	for _, cause := range []error{jobs.ErrShutdown, jobs.ErrCancelled} {
		t.Run(fmt.Sprintf("own work: %v", cause), func(t *testing.T) { suite.ownWork(t, cause) })
	}
	if suite.Phase == "" {
		return
	}
	t.Run("shutdown while a tool runs", suite.adopted)
	t.Run("cancelled while a tool runs", suite.cancelled)
	t.Run("lost", suite.lost)
}

// doneOnce: a second call of the same attempt gives the same and runs nothing.
func (suite Suite) doneOnce(t *testing.T) {
	s := NewSite(t, suite.Kind)
	h := suite.New(t, s)
	for range 2 {
		succeeds(t, h, s)
	}
	s.onlyOnce(t)
}

func succeeds(t *testing.T, h jobs.Handler, s *Site) {
	t.Helper()
	out, err := h.Handle(t.Context(), s.Attempt(t))
	if err != nil || !out.Succeeded() {
		t.Fatalf("outcome = %+v, %v, want success", out.Failure, err)
	}
}

// ownWork: the context ends in any of the handler's own reads. That is never a
// failure of the work, and after a shutdown the next daemon goes on.
func (suite Suite) ownWork(t *testing.T, cause error) {
	for call := 1; ; call++ {
		s := NewSite(t, suite.Kind)
		h := suite.New(t, s)
		ctx, end := context.WithCancelCause(t.Context())
		s.Ledger.endAt, s.Ledger.end = call, func() { end(cause) }
		out, err := h.Handle(ctx, s.Attempt(t))
		reached := ctx.Err() != nil
		end(nil)
		if !reached {
			if call == 1 {
				t.Error("the handler reads nothing: the test proves nothing")
			}
			return
		}
		if err == nil && !(out.Failure != nil && out.Failure.Code == orchestrator.CodeCancelled && errors.Is(cause, jobs.ErrCancelled)) {
			t.Errorf("call %d of the ledger: outcome = %+v without an error, want one", call, out.Failure)
		}
		if errors.Is(cause, jobs.ErrShutdown) {
			succeeds(t, h, s)
			s.onlyOnce(t)
		}
	}
}

// held calls the handler and returns when its tool waits. The channel receives
// what the handler returns once end was called or the tool is gone.
func (suite Suite) held(t *testing.T) (s *Site, h jobs.Handler, a *jobs.Attempt, end context.CancelCauseFunc, returned <-chan result) {
	t.Helper()
	s = NewSite(t, suite.Kind)
	h = suite.New(t, s)
	s.Hold(t)
	a = s.Attempt(t)
	ctx, end := context.WithCancelCause(t.Context())
	t.Cleanup(func() { end(nil) })
	ch := make(chan result, 1)
	go func() {
		out, err := h.Handle(ctx, a)
		ch <- result{out, err}
	}()
	s.AwaitHeld(t)
	return s, h, a, end, ch
}

type result struct {
	out orchestrator.Outcome
	err error
}

// adopted: a shutdown leaves the tool running, and the next daemon takes it up.
func (suite Suite) adopted(t *testing.T) {
	s, h, _, end, returned := suite.held(t)
	end(jobs.ErrShutdown)
	if r := <-returned; !errors.Is(r.err, jobs.ErrShutdown) {
		t.Errorf("outcome = %+v, %v, want the shutdown", r.out.Failure, r.err)
	}
	s.Release(t)
	succeeds(t, h, s)
	s.onlyOnce(t)
}

// cancelled: the tool is told to end, and the outcome says who wanted it.
func (suite Suite) cancelled(t *testing.T) {
	s, _, _, end, returned := suite.held(t)
	end(jobs.ErrCancelled)
	r := <-returned
	if r.err != nil || r.out.Failure == nil || r.out.Failure.Code != orchestrator.CodeCancelled {
		t.Errorf("outcome = %+v, %v, want cancelled", r.out.Failure, r.err)
	}
	s.onlyOnce(t)
}

// lost: supervisor and tool die. The handler says so, or what it may have lost.
func (suite Suite) lost(t *testing.T) {
	s, h, a, end, returned := suite.held(t)
	end(jobs.ErrShutdown)
	<-returned
	s.Kill(t, a, suite.Phase)
	out, err := h.Handle(t.Context(), s.Attempt(t))
	if !errors.Is(err, jobs.ErrLost) && len(out.Lost) == 0 {
		t.Errorf("outcome = %+v, %v, want lost", out.Failure, err)
	}
	s.onlyOnce(t)
}
