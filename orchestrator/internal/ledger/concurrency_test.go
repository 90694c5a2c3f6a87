package ledger

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

// Many clients submit, each key twice; many workers claim and finish; a reader
// watches. Nobody polls.
func TestManySubmittersAndWorkers(t *testing.T) {
	l := openAt(t, filepath.Join(quickDir(t), "ledger.db"), Options{})
	const workspaces, keys, workers = 3, 12, 4
	for w := range workspaces {
		addWorkspace(t, l, fmt.Sprintf("w%d", w))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	var mu sync.Mutex
	made := map[orchestrator.RunID]int{} // how often it was said to be new
	for k := range keys {
		for range 2 {
			wg.Go(func() {
				n := newRun(fmt.Sprintf("w%d", k%workspaces))
				n.Key = fmt.Sprintf("key %d", k)
				r, created, err := l.SubmitRun(ctx, n)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				made[r.ID] += map[bool]int{true: 1}[created]
			})
		}
	}
	finished := make(chan struct{})
	var once sync.Once
	busy := map[string]int{}
	for range workers {
		wg.Go(func() {
			for {
				changed := l.Changed()
				j, err := l.ClaimJob(ctx)
				if err != nil {
					t.Error(err)
					once.Do(func() { close(finished) })
					return
				}
				if j == nil {
					select {
					case <-changed:
						continue
					case <-finished:
						return
					}
				}
				mu.Lock()
				if busy[j.Workspace]++; busy[j.Workspace] > 1 {
					t.Errorf("two attempts in %s at once", j.Workspace)
				}
				mu.Unlock()
				if err := l.SetPhase(ctx, j.ID, j.Attempt.Token, "play"); err != nil {
					t.Error(err)
				}
				mu.Lock()
				busy[j.Workspace]--
				mu.Unlock()
				if _, err := l.FinishJob(ctx, j.ID, j.Attempt.Token, orchestrator.Outcome{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		watch(ctx, t, l, keys)
		once.Do(func() { close(finished) })
	})
	wg.Wait()
	if len(made) != keys {
		t.Errorf("%d runs of %d keys", len(made), keys)
	}
	for id, n := range made {
		if n != 1 {
			t.Errorf("run %s was new %d times", id, n)
		}
	}
}

// watch reads until that many runs have succeeded. Whatever it has seen, it
// never sees an older state.
func watch(ctx context.Context, t *testing.T, l *Ledger, runs int) {
	rank := map[orchestrator.StepState]int{
		orchestrator.StepBlocked: 0, orchestrator.StepReady: 1, orchestrator.StepRunning: 2, orchestrator.StepSucceeded: 3,
	}
	seen := map[orchestrator.RunID]int{}
	var last orchestrator.Event
	for {
		changed := l.Changed()
		events, err := l.Events(ctx, orchestrator.EventFilter{After: last.ID})
		if err != nil {
			t.Error(err)
			return
		}
		for _, e := range events {
			if e.ID != last.ID+1 || e.At.Before(last.At) {
				t.Errorf("event %d at %v after %d at %v", e.ID, e.At, last.ID, last.At)
			}
			last = e
		}
		all, err := l.Runs(ctx, orchestrator.RunFilter{})
		if err != nil {
			t.Error(err)
			return
		}
		done := 0
		for _, r := range all {
			progress := 0
			for _, s := range r.Steps {
				progress += rank[s.State]
			}
			if progress < seen[r.ID] {
				t.Errorf("run %s went back from %d to %d", r.ID, seen[r.ID], progress)
			}
			seen[r.ID] = progress
			if r.State == orchestrator.RunSucceeded {
				done++
			}
		}
		if done == runs {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Errorf("%d of %d runs done: %v", done, runs, ctx.Err())
			return
		}
	}
}
