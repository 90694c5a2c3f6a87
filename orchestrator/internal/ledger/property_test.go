package ledger

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/exocomp/exocomp/orchestrator"
)

// quickDir returns a directory in RAM where the machine has one: histories that
// a computer walks need no disk, and FULL stays on.
func quickDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "ledger-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// modelWork is a run (four steps, or two) or a standalone job (one), as the model
// thinks of it: states, a place in a queue, and counts.
type modelWork struct {
	run                   orchestrator.RunID // one of run and job is set
	kind                  orchestrator.RunKind
	taken                 int // steps that other runs did
	job                   orchestrator.JobID
	workspace             string
	steps                 []orchestrator.StepState // a job's stands for the job
	crashes, begunCrashes int                      // of the step at hand
	begun                 bool                     // its live attempt has a phase
	order                 int                      // when its newest job was queued
	live                  *orchestrator.Job        // its claimed attempt
	stale                 []orchestrator.Job       // attempts that are over
	asked                 bool                     // to end
	cut                   bool                     // a job that was interrupted
	redriven              orchestrator.JobID
}

// current returns the index of the step at hand.
func (w *modelWork) current() int {
	return slices.IndexFunc(w.steps, func(s orchestrator.StepState) bool { return s != orchestrator.StepSucceeded })
}

func (w *modelWork) state() orchestrator.RunState { return orchestrator.RunStateOf(w.steps) }

// model predicts what the ledger does.
type model struct {
	t      context.Context
	path   string
	l      *Ledger
	work   []*modelWork
	queues map[string][]*modelWork
	queued int
	drains bool
	newest orchestrator.Event
}

var modelWorkspaces = []string{"a", "b"}

// end takes w out of its queue if it is final, and releases the next.
func (m *model) end(w *modelWork) {
	if !w.state().Final() && !w.cut {
		return
	}
	q := m.queues[w.workspace]
	m.queues[w.workspace] = slices.DeleteFunc(q, func(o *modelWork) bool { return o == w })
	m.advance(w.workspace)
}

func (m *model) advance(workspace string) {
	if q := m.queues[workspace]; len(q) > 0 && q[0].run != "" && q[0].state() == orchestrator.RunQueued {
		for i := range q[0].taken {
			q[0].steps[i] = orchestrator.StepSucceeded
		}
		m.release(q[0], q[0].taken)
	}
}

func (m *model) release(w *modelWork, step int) {
	w.steps[step] = orchestrator.StepReady
	m.queued++
	w.order = m.queued
}

func (m *model) enqueue(w *modelWork) {
	m.work = append(m.work, w)
	m.queues[w.workspace] = append(m.queues[w.workspace], w)
	if w.job != "" {
		m.queued++
		w.order = m.queued
	}
	m.advance(w.workspace)
}

// cancelRest cancels what is not final.
func (m *model) cancelRest(w *modelWork) {
	for i, s := range w.steps {
		if !s.Final() {
			w.steps[i] = orchestrator.StepCancelled
		}
	}
	m.end(w)
}

// settle applies an attempt's end.
func (m *model) settle(w *modelWork, state orchestrator.StepState) {
	i := w.current()
	w.stale, w.live = append(w.stale, *w.live), nil
	w.steps[i] = state
	if state == orchestrator.StepSucceeded {
		w.crashes, w.begunCrashes, w.begun = 0, 0, false // of the next step
	}
	switch {
	case state == orchestrator.StepCancelled, state == orchestrator.StepSucceeded && w.asked && i+1 < len(w.steps):
		m.cancelRest(w)
	case state == orchestrator.StepSucceeded && i+1 < len(w.steps):
		m.release(w, i+1)
	default:
		m.end(w)
	}
}

// pick draws a piece of work that fits, or skips the action.
func (m *model) pick(rt *rapid.T, fits func(*modelWork) bool) *modelWork {
	var list []*modelWork
	for _, w := range m.work {
		if fits(w) {
			list = append(list, w)
		}
	}
	if len(list) == 0 {
		rt.Skip("nothing fits")
	}
	return list[rapid.IntRange(0, len(list)-1).Draw(rt, "which")]
}

func blockedSteps(kind orchestrator.RunKind) []orchestrator.StepState {
	return slices.Repeat([]orchestrator.StepState{orchestrator.StepBlocked}, len(kind.Steps()))
}

func specOf(kind orchestrator.RunKind) orchestrator.RunSpec {
	s := spec("a")
	if kind == orchestrator.RunHandoff {
		s.SSHWait = 0
	}
	return s
}

func (m *model) submitRun(rt *rapid.T) {
	n := newRun(rapid.SampledFrom(modelWorkspaces).Draw(rt, "workspace"))
	n.Kind = rapid.SampledFrom(orchestrator.RunKinds).Draw(rt, "kind")
	n.Spec = specOf(n.Kind)
	r, created, err := m.l.SubmitRun(m.t, n)
	if err != nil || !created {
		rt.Fatalf("submit run: created %v, %v", created, err)
	}
	m.enqueue(&modelWork{run: r.ID, kind: n.Kind, workspace: n.Workspace, steps: blockedSteps(n.Kind)})
}

// newestRun returns the newest run of w's workspace.
func (m *model) newestRun(w *modelWork) *modelWork {
	return m.work[len(m.work)-1-slices.IndexFunc(reversed(m.work), func(o *modelWork) bool {
		return o.run != "" && o.workspace == w.workspace
	})]
}

func (m *model) takeOver(rt *rapid.T) {
	w := m.pick(rt, func(w *modelWork) bool { return w.run != "" })
	kinds := w.kind.Steps()
	first := rapid.IntRange(0, len(kinds)-1).Draw(rt, "first")
	done := !slices.ContainsFunc(w.steps[:first], func(s orchestrator.StepState) bool { return s != orchestrator.StepSucceeded })
	may := w.state().Final() && done && m.newestRun(w) == w && len(m.queues[w.workspace]) == 0
	r, err := m.l.ResumeRun(m.t, orchestrator.ResumeRun{Run: w.run, Spec: specOf(w.kind), By: tester, From: kinds[first]})
	if !may {
		if orchestrator.CodeOf(err) != orchestrator.CodeConflict {
			rt.Fatalf("take over of %+v from step %d: %v, want a conflict", w, first+1, err)
		}
		return
	}
	if err != nil || r.ID == w.run {
		rt.Fatalf("take over of %s: %s, %v", w.run, r.ID, err)
	}
	next := &modelWork{run: r.ID, kind: w.kind, taken: first, workspace: w.workspace, steps: blockedSteps(w.kind)}
	m.enqueue(next)
}

func (m *model) submitJob(rt *rapid.T) {
	n := orchestrator.NewJob{Kind: orchestrator.JobHostOnboard, Workspace: rapid.SampledFrom(modelWorkspaces).Draw(rt, "workspace")}
	j, err := m.l.SubmitJob(m.t, n)
	if err != nil {
		rt.Fatal(err)
	}
	m.enqueue(&modelWork{job: j.ID, workspace: n.Workspace, steps: []orchestrator.StepState{orchestrator.StepReady}})
}

func (m *model) claim(rt *rapid.T) {
	var want *modelWork
	for _, q := range m.queues {
		if len(q) > 0 && !m.drains && slices.Contains(q[0].steps, orchestrator.StepReady) && (want == nil || q[0].order < want.order) {
			want = q[0]
		}
	}
	j, err := m.l.ClaimJob(m.t)
	switch {
	case err != nil:
		rt.Fatal(err)
	case j == nil && want == nil:
	case j == nil || want == nil:
		rt.Fatalf("claimed %+v, want %+v", j, want)
	case j.Run != want.run || want.run == "" && j.ID != want.job || want.run != "" && j.Step != want.current()+1:
		rt.Fatalf("claimed %+v, want %+v", j, want)
	default:
		want.steps[want.current()], want.live = orchestrator.StepRunning, j
	}
}

func (m *model) finish(rt *rapid.T) {
	w := m.pick(rt, func(w *modelWork) bool { return w.live != nil })
	end := rapid.SampledFrom([]orchestrator.StepState{
		orchestrator.StepSucceeded, orchestrator.StepSucceeded, orchestrator.StepFailed, orchestrator.StepCancelled,
	}).Draw(rt, "end")
	o := map[orchestrator.StepState]orchestrator.Outcome{
		orchestrator.StepFailed: failure(), orchestrator.StepCancelled: cancelledOutcome(),
	}[end]
	if _, err := m.l.FinishJob(m.t, w.live.ID, w.live.Attempt.Token, o); err != nil {
		rt.Fatal(err)
	}
	m.settle(w, end)
}

func (m *model) finishStale(rt *rapid.T) {
	w := m.pick(rt, func(w *modelWork) bool { return len(w.stale) > 0 })
	j := rapid.SampledFrom(w.stale).Draw(rt, "attempt")
	if _, err := m.l.FinishJob(m.t, j.ID, j.Attempt.Token, orchestrator.Outcome{}); orchestrator.CodeOf(err) != orchestrator.CodeConflict {
		rt.Fatalf("a stale result: %v, want a conflict", err)
	}
}

func (m *model) interrupt(rt *rapid.T) {
	w := m.pick(rt, func(w *modelWork) bool { return w.live != nil })
	crash, begun := rapid.Bool().Draw(rt, "crash"), rapid.Bool().Draw(rt, "begun")
	if begun {
		if err := m.l.SetPhase(m.t, w.live.ID, w.live.Attempt.Token, "apply"); err != nil {
			rt.Fatal(err)
		}
		w.begun = true
	}
	if _, err := m.l.InterruptJob(m.t, w.live.ID, w.live.Attempt.Token, "cut short", crash); err != nil {
		rt.Fatal(err)
	}
	if crash && !w.asked {
		w.crashes++
		if w.begun {
			w.begunCrashes++
		}
	}
	w.begun = false
	switch {
	case w.asked:
		m.settle(w, orchestrator.StepCancelled)
	case w.run == "":
		w.cut = true
		m.settle(w, orchestrator.StepFailed)
	case w.begunCrashes >= orchestrator.MaxCrashAttempts || w.crashes >= orchestrator.MaxCrashes:
		m.settle(w, orchestrator.StepFailed)
	default:
		w.stale, w.live = append(w.stale, *w.live), nil
		m.release(w, w.current())
	}
}

func (m *model) cancel(rt *rapid.T) {
	w := m.pick(rt, func(*modelWork) bool { return true })
	var err error
	if w.run != "" {
		_, err = m.l.CancelRun(m.t, w.run, false, tester)
	} else {
		_, err = m.l.CancelJob(m.t, w.job, false, tester)
	}
	switch {
	case w.state().Final():
		if orchestrator.CodeOf(err) != orchestrator.CodeConflict {
			rt.Fatalf("cancel of what is over: %v, want a conflict", err)
		}
	case err != nil:
		rt.Fatal(err)
	case w.live != nil:
		w.asked = true
	default:
		m.cancelRest(w)
	}
}

func (m *model) resume(rt *rapid.T) {
	w := m.pick(rt, func(w *modelWork) bool { return w.run != "" })
	may := w.state() == orchestrator.RunFailed && m.newestRun(w) == w && len(m.queues[w.workspace]) == 0
	_, err := m.l.ResumeRun(m.t, orchestrator.ResumeRun{Run: w.run, Spec: specOf(w.kind), By: tester})
	if !may {
		if orchestrator.CodeOf(err) != orchestrator.CodeConflict {
			rt.Fatalf("resume of %+v: %v, want a conflict", w, err)
		}
		return
	}
	if err != nil {
		rt.Fatal(err)
	}
	w.crashes, w.begunCrashes, w.begun, w.asked = 0, 0, false, false
	m.queues[w.workspace] = []*modelWork{w}
	m.release(w, w.current())
}

func reversed[T any](list []T) []T {
	out := slices.Clone(list)
	slices.Reverse(out)
	return out
}

func (m *model) redrive(rt *rapid.T) {
	w := m.pick(rt, func(w *modelWork) bool { return w.job != "" })
	j, err := m.l.RedriveJob(m.t, w.job, tester)
	if w.redriven != "" { // asked again, it answers the same one
		if err != nil || j.ID != w.redriven {
			rt.Fatalf("redrive of %+v: %s, %v, want the job before", w, j.ID, err)
		}
		return
	}
	if !w.cut {
		if orchestrator.CodeOf(err) != orchestrator.CodeConflict {
			rt.Fatalf("redrive of %+v: %v, want a conflict", w, err)
		}
		return
	}
	if err != nil {
		rt.Fatal(err)
	}
	w.redriven = j.ID
	m.enqueue(&modelWork{job: j.ID, workspace: w.workspace, steps: []orchestrator.StepState{orchestrator.StepReady}})
}

func (m *model) drain(rt *rapid.T) {
	m.drains = !m.drains
	if err := m.l.SetDraining(m.t, m.drains, tester); err != nil {
		rt.Fatal(err)
	}
}

func (m *model) restart(rt *rapid.T) {
	if err := m.l.Close(); err != nil {
		rt.Fatal(err)
	}
	var err error
	if m.l, err = Open(m.t, m.path, Options{}); err != nil {
		rt.Fatal(err)
	}
}

// check compares everything that the ledger says with the model.
func (m *model) check(rt *rapid.T) {
	list, err := m.l.Runs(m.t, orchestrator.RunFilter{})
	if err != nil {
		rt.Fatal(err)
	}
	runs := map[orchestrator.RunID]orchestrator.Run{}
	for _, r := range list {
		runs[r.ID] = r
	}
	jobList, err := m.l.Jobs(m.t, orchestrator.JobFilter{})
	if err != nil {
		rt.Fatal(err)
	}
	jobs := map[orchestrator.JobID]orchestrator.Job{}
	for _, j := range jobList {
		jobs[j.ID] = j
	}
	for _, w := range m.work {
		if w.run != "" {
			w.checkRun(rt, runs[w.run])
		} else {
			w.checkJob(rt, jobs[w.job])
		}
	}
	for _, name := range modelWorkspaces {
		turns, err := m.l.Turns(m.t, name)
		if err != nil {
			rt.Fatal(err)
		}
		same := slices.EqualFunc(turns, m.queues[name], func(t orchestrator.Turn, w *modelWork) bool {
			return t.Run == w.run && t.Job == w.job
		})
		if !same {
			rt.Fatalf("turns of %s are %+v, want %d of the model's", name, turns, len(m.queues[name]))
		}
	}
	running, err := m.l.RunningJobs(m.t)
	if err != nil {
		rt.Fatal(err)
	}
	live := 0
	for _, w := range m.work {
		if w.live != nil {
			live++
		}
	}
	if len(running) != live {
		rt.Fatalf("%d jobs run, want %d", len(running), live)
	}
	events, err := m.l.Events(m.t, orchestrator.EventFilter{After: m.newest.ID})
	if err != nil {
		rt.Fatal(err)
	}
	for _, e := range events {
		if e.ID <= m.newest.ID || e.At.Before(m.newest.At) {
			rt.Fatalf("event %+v goes back behind %+v", e, m.newest)
		}
		m.newest = e
	}
}

func (w *modelWork) checkJob(rt *rapid.T, j orchestrator.Job) {
	want := map[orchestrator.StepState]orchestrator.JobState{
		orchestrator.StepReady: orchestrator.JobQueued, orchestrator.StepRunning: orchestrator.JobRunning,
		orchestrator.StepSucceeded: orchestrator.JobSucceeded, orchestrator.StepFailed: orchestrator.JobFailed,
		orchestrator.StepCancelled: orchestrator.JobCancelled,
	}[w.steps[0]]
	if w.cut {
		want = orchestrator.JobInterrupted
	}
	if j.State != want {
		rt.Fatalf("job %s is %s, want %s", w.job, j.State, want)
	}
}

func (w *modelWork) checkRun(rt *rapid.T, r orchestrator.Run) {
	if len(r.Steps) != len(w.steps) {
		rt.Fatalf("run %s has %d steps", w.run, len(r.Steps))
	}
	for i, s := range r.Steps {
		if (s.TakenFrom != "") != (i < w.taken) {
			rt.Fatalf("step %d of %s is taken from %q, want %d of them taken", s.Seq, r.ID, s.TakenFrom, w.taken)
		}
		if s.State != w.steps[i] {
			rt.Fatalf("step %d of %s is %s, want %s", s.Seq, r.ID, s.State, w.steps[i])
		}
	}
	if r.State != w.state() || r.FinishedAt.IsZero() == r.State.Final() {
		rt.Fatalf("run %s is %s, finished at %v, want %s", r.ID, r.State, r.FinishedAt, w.state())
	}
	if i := w.current(); i >= 0 && r.Steps[i].CrashAttempts != w.crashes {
		rt.Fatalf("step %d of %s crashed %d times, want %d", i+1, r.ID, r.Steps[i].CrashAttempts, w.crashes)
	}
}

func TestRandomHistoriesFollowTheModel(t *testing.T) {
	dir := quickDir(t)
	rapid.Check(t, func(rt *rapid.T) {
		home, err := os.MkdirTemp(dir, "")
		if err != nil {
			rt.Fatal(err)
		}
		m := &model{t: t.Context(), path: filepath.Join(home, "ledger.db"), queues: map[string][]*modelWork{}}
		if m.l, err = Open(m.t, m.path, Options{Now: time.Now}); err != nil {
			rt.Fatal(err)
		}
		defer func() {
			_ = m.l.Close()
			_ = os.RemoveAll(home)
		}()
		for _, w := range modelWorkspaces {
			if _, err := m.l.AddWorkspace(m.t, workspaceNamed(w), tester); err != nil {
				rt.Fatal(err)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"submit run":  m.submitRun,
			"submit job":  m.submitJob,
			"claim":       m.claim,
			"claim again": m.claim, // twice as likely
			"finish":      m.finish,
			"stale":       m.finishStale,
			"interrupt":   m.interrupt,
			"cancel":      m.cancel,
			"resume":      m.resume,
			"take over":   m.takeOver,
			"redrive":     m.redrive,
			"drain":       m.drain,
			"restart":     m.restart,
			"":            m.check,
		})
	})
}
