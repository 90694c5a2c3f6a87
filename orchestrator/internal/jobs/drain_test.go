package jobs

import (
	"context"
	"errors"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// drains ends w's job by a drain once it is ready, and returns the row then.
func (w *world) drains(t *testing.T, q *fileQueue, ready func()) (r row) {
	t.Helper()
	ready()
	if err := q.update(func(r *row) error { r.Drain = true; return nil }); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the job has ended", func() bool {
		var err error
		r, err = q.read()
		return err == nil && r.State != orchestrator.JobRunning
	})
	return r
}

// A tool that a drain ended in order is no failure, no cancellation and no crash:
// its job is run again when the drain is over.
func TestADrainCostsNoJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Phases = []phaseSpec{{Phase: "apply", Graceful: true, Script: `echo run >>runs
[ -e again ] && exit 0
trap 'exit 1' TERM; touch ready; while :; do sleep 0.02; done`}}
	q := w.queue()
	cfg := w.config(q)
	cfg.Handler = w
	runPool(t, cfg, func() {
		r := w.drains(t, q, func() {
			eventually(t, "the tool runs", func() bool { return exists(w.scratch("ready")) })
		})
		if r.State != orchestrator.JobQueued || len(r.Rearmed) != 1 || r.Crashes != 0 || r.Finishes != 0 {
			t.Errorf("the job is %+v, want it queued again and nothing counted", r)
		}
		w.touch(t, "again")
		if err := q.update(func(r *row) error { r.Drain = false; return nil }); err != nil {
			t.Fatal(err)
		}
		if r = w.finished(t); r.State != orchestrator.JobSucceeded {
			t.Errorf("after the drain the job is %+v", r)
		}
	})
	if runs := w.lines(t, "runs"); len(runs) != 2 {
		t.Errorf("the tool ran %d times, want twice", len(runs))
	}
}

func TestADrainEndsTheDaemonsOwnWorkInOrder(t *testing.T) {
	t.Parallel()
	lost := []orchestrator.LostCreate{{Address: "vm.a"}}
	for name, c := range map[string]struct {
		said error
		out  orchestrator.Outcome
		want row
	}{
		"an error":              {said: errors.New("signal: terminated"), want: row{State: orchestrator.JobQueued}},
		"done all the same":     {want: row{State: orchestrator.JobSucceeded}},
		"its own failure":       {out: orchestrator.Fail(orchestrator.Errorf(orchestrator.CodeFailed, "broken"), nil), want: row{State: orchestrator.JobFailed}},
		"a create may be lost":  {out: orchestrator.Outcome{Failure: orchestrator.FailureOf(ErrDrained), Lost: lost}, want: row{State: orchestrator.JobFailed}},
		"cancelled by a person": {said: errors.New("signal: terminated"), want: row{State: orchestrator.JobFailed, Cancel: true}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			q := w.queue()
			cfg := w.config(q)
			begun := make(chan struct{}, 1)
			cfg.Handler = handlerFunc(func(ctx context.Context, a *Attempt) (orchestrator.Outcome, error) {
				begun <- struct{}{}
				<-ctx.Done()
				return c.out, c.said
			})
			runPool(t, cfg, func() {
				r := w.drains(t, q, func() {
					<-begun
					if err := q.update(func(r *row) error { r.Cancel = c.want.Cancel; return nil }); err != nil {
						t.Fatal(err)
					}
				})
				if r.State != c.want.State || r.Crashes != 0 {
					t.Errorf("the job is %+v, want it %s", r, c.want.State)
				}
				if r.Outcome != nil && (r.Outcome.Code == orchestrator.CodeCancelled) != c.want.Cancel {
					t.Errorf("the outcome is %+v, cancelled by a person: %v", r.Outcome, c.want.Cancel)
				}
			})
		})
	}
}
