package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

func TestExecTellsHowTheToolEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.attempt(t)
	for _, c := range []struct {
		phase, script, signal string
		code                  int
	}{
		{"ok", "exit 0", "", 0},
		{"fails", "exit 7", "", 7},
		{"killed", "kill -9 $$", "SIGKILL", -1},
	} {
		r, err := a.Exec(t.Context(), w.tool(phaseSpec{Phase: c.phase, Script: c.script}))
		if err != nil {
			t.Fatal(err)
		}
		if r.ExitCode != c.code || r.Signal != c.signal || r.Cancelled || r.Succeeded() != (c.code == 0) {
			t.Errorf("%s: result = %+v", c.phase, r)
		}
		if r.StartedAt.IsZero() || r.FinishedAt.Before(r.StartedAt) {
			t.Errorf("%s: from %s to %s", c.phase, r.StartedAt, r.FinishedAt)
		}
	}
}

func TestExecOfAFinishedPhaseRunsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.attempt(t)
	q := a.cfg.Queue.(*memQueue)
	tool := w.tool(phaseSpec{Phase: "play", Script: `echo run >>runs; echo one >&$EXOCOMP_EVENTS_FD; printf two >&$EXOCOMP_EVENTS_FD; exit 3`})
	tool.Events = true
	for i := range 2 {
		var events []string
		tool.OnEvent = func(line []byte) { events = append(events, string(line)) }
		r, err := a.Exec(t.Context(), tool)
		if err != nil {
			t.Fatal(err)
		}
		if r.ExitCode != 3 || r.EventsPath != a.control("play").eventsPath() {
			t.Errorf("call %d: result = %+v", i+1, r)
		}
		if want := []string{"one", "two"}; !slices.Equal(events, want) {
			t.Errorf("call %d: events = %q, want %q", i+1, events, want)
		}
	}
	if got := w.lines(t, "runs"); len(got) != 1 {
		t.Errorf("the tool ran %d times, want once", len(got))
	}
	if want := []string{"play"}; !slices.Equal(q.phases, want) {
		t.Errorf("intents = %q, want %q", q.phases, want)
	}
	if !a.Began("play") || a.Began("other") {
		t.Error("Began does not know which phase was begun")
	}
}

// A supervisor that ended before it started anything leaves a phase as it was:
// fresh, so it is prepared again. A phase that is over is not.
func TestExecPreparesOnlyWhatItStarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.attempt(t)
	tool := a.control("play")
	if err := durable.Mkdir(tool.dir); err != nil {
		t.Fatal(err)
	}
	lock, err := tool.tryLock(true)
	if err != nil {
		t.Fatal(err)
	}
	closeLock(lock)
	if a.Began("play") {
		t.Error("a phase in which nothing ran has begun")
	}
	prepared := 0
	for range 2 {
		whole := w.tool(phaseSpec{Phase: "play", Script: "exit 0"})
		_, err := a.Exec(t.Context(), Tool{Phase: "play", Prepare: func(t *Tool) error {
			prepared++
			t.Argv, t.Env, t.Dir = whole.Argv, whole.Env, whole.Dir
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if prepared != 1 {
		t.Errorf("prepared %d times, want once", prepared)
	}
	want := errors.New("no such key")
	_, err = a.Exec(t.Context(), Tool{Phase: "other", Prepare: func(*Tool) error { return want }})
	if !errors.Is(err, want) || a.Began("other") {
		t.Errorf("an error of Prepare is not the caller's, or something was started: %v", err)
	}
}

func TestExecSaysWhyTheToolCouldNotBeStarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.attempt(t)
	tool := Tool{Phase: "apply", Argv: []string{"/nowhere/tofu"}, Dir: "/"}
	for range 2 { // the second time from the result
		_, err := a.Exec(t.Context(), tool)
		if orchestrator.CodeOf(err) != orchestrator.CodeFailed || !strings.Contains(err.Error(), "execute /nowhere/tofu: no such file or directory") {
			t.Errorf("error = %v", err)
		}
	}
	bad := Tool{Phase: "play", Argv: []string{"/bin/true"}, Dir: "/", AgentKeys: []orchestrator.Secret{orchestrator.NewSecret("no key")}}
	if _, err := a.Exec(t.Context(), bad); orchestrator.CodeOf(err) != orchestrator.CodeFailed || !strings.Contains(err.Error(), "private key 1 of 1") {
		t.Errorf("error = %v, want one that names the key", err)
	}
}

func TestExecRefusesAMistakeOfTheDriver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.attempt(t)
	for _, tool := range []Tool{
		{Phase: "../x", Argv: []string{"/bin/true"}, Dir: "/"},
		{Phase: "x", Argv: []string{"true"}, Dir: "/"},
		{Phase: "x", Argv: []string{"/bin/true"}, Dir: "rel"},
		{Phase: "x", Argv: []string{"/bin/true"}, Dir: "/", Env: []string{"=x"}},
		{Phase: "x", Argv: []string{"/bin/true"}, Dir: "/", OnStdout: func([]byte) {}},
	} {
		if _, err := a.Exec(t.Context(), tool); orchestrator.CodeOf(err) != orchestrator.CodeInternal {
			t.Errorf("%+v: error = %v, want internal", tool, err)
		}
	}
}

func TestPhaseInWhichNothingRanIsBegunAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.attempt(t)
	c := w.control("apply")
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := c.tryLock(true)
	if err != nil {
		t.Fatal(err)
	}
	closeLock(lock)
	if r, err := a.Exec(t.Context(), w.tool(phaseSpec{Phase: "apply", Script: "exit 0"})); err != nil || !r.Succeeded() {
		t.Errorf("result = %+v, %v", r, err)
	}
}

func TestSupervisorThatCannotBeginIsAnError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.attempt(t)
	a.cfg.BootIDFile = "/nowhere/boot_id"
	_, err := a.Exec(t.Context(), w.tool(phaseSpec{Phase: "apply", Script: "echo run >>runs"}))
	if err == nil || !strings.Contains(err.Error(), "ended before it started anything") || !strings.Contains(err.Error(), "/nowhere/boot_id") {
		t.Errorf("error = %v, want the supervisor's last words", err)
	}
	if got := w.lines(t, "runs"); len(got) != 0 {
		t.Error("the tool ran without a record of it")
	}
}

// refusingQueue knows that another attempt is the live one.
type refusingQueue struct{ memQueue }

func (*refusingQueue) SetPhase(context.Context, orchestrator.JobID, orchestrator.Secret, string) error {
	return orchestrator.Errorf(orchestrator.CodeConflict, "not the live attempt")
}

func TestNoIntentNoTool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.attempt(t)
	a.cfg.Queue = &refusingQueue{}
	_, err := a.Exec(t.Context(), w.tool(phaseSpec{Phase: "apply", Script: "echo run >>runs"}))
	if !errors.Is(err, orchestrator.ErrConflict) || a.Began("apply") || len(w.lines(t, "runs")) > 0 {
		t.Errorf("error = %v, want a conflict and nothing begun", err)
	}
}

// cancelled runs a tool until it is ready and cancels it.
func cancelled(t *testing.T, w *world, tool Tool, cause error) (Result, time.Duration) {
	t.Helper()
	a := w.attempt(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var begin time.Time
	done := make(chan struct{})
	go func() {
		defer close(done)
		for end := time.Now().Add(20 * time.Second); !exists(w.scratch("ready")) && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond)
		}
		begin = time.Now()
		if cause != nil {
			cancel(cause)
		}
		if cause == nil || errors.Is(cause, ErrForced) {
			a.force()
		}
	}()
	r, err := a.Exec(ctx, tool)
	if err != nil {
		t.Fatal(err)
	}
	<-done
	if !r.Cancelled {
		t.Errorf("result = %+v, want cancelled", r)
	}
	return r, time.Since(begin)
}

func TestCancelWaitsForAGracefulTool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tool := w.tool(phaseSpec{Phase: "apply", Script: saving, Graceful: true})
	tool.Grace = time.Millisecond // does not concern it
	r, _ := cancelled(t, w, tool, ErrCancelled)
	if r.ExitCode != 1 || r.Signal != "" {
		t.Errorf("result = %+v, want the tool's own end", r)
	}
	if terms, state := w.lines(t, "terms"), w.lines(t, "state"); len(terms) != 1 || len(state) != 1 {
		t.Errorf("the tool was told %d times and saved %d times, want once", len(terms), len(state))
	}
}

func TestForceKillsAGracefulTool(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{ErrForced, nil} {
		w := newWorld(t)
		r, took := cancelled(t, w, w.tool(phaseSpec{Phase: "apply", Script: `trap '' TERM; touch ready; while :; do sleep 0.1; done`, Graceful: true}), cause)
		if r.Signal != "SIGKILL" {
			t.Errorf("result = %+v, want SIGKILL", r)
		}
		if took > 8*time.Second {
			t.Errorf("it took %s", took)
		}
	}
}

func TestToolThatIgnoresSIGTERMIsKilledAfterItsGrace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tool := w.tool(phaseSpec{Phase: "play", Script: `trap '' TERM; touch ready; while :; do sleep 0.1; done`})
	tool.Grace = 300 * time.Millisecond
	r, took := cancelled(t, w, tool, ErrCancelled)
	if r.Signal != "SIGKILL" || took < tool.Grace {
		t.Errorf("result = %+v after %s, want SIGKILL after %s", r, took, tool.Grace)
	}
}

func TestCancelledBeforeTheStartRunsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ErrCancelled)
	_, err := w.attempt(t).Exec(ctx, w.tool(phaseSpec{Phase: "play", Script: "echo run >>runs"}))
	if !errors.Is(err, ErrCancelled) || len(w.lines(t, "runs")) > 0 {
		t.Errorf("error = %v, want the cause and no run", err)
	}
}

func TestResultOfASupervisorThatDoesNotEndIsTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.attempt(t)
	a.cfg.takeResultAfter = 50 * time.Millisecond
	c := w.control("play")
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := c.tryLock(true)
	if err != nil {
		t.Fatal(err)
	}
	defer closeLock(lock)
	if err := c.writeOutcome(outcome{Token: w.token().Reveal(), ExitCode: 4}); err != nil {
		t.Fatal(err)
	}
	if r, err := a.Exec(t.Context(), w.tool(phaseSpec{Phase: "play", Script: "exit 0"})); err != nil || r.ExitCode != 4 {
		t.Errorf("result = %+v, %v, want the one that is there", r, err)
	}
}

// lostPhase lays out a phase whose supervisor is gone.
func lostPhase(t *testing.T, w *world, r record) {
	t.Helper()
	c := w.control("apply")
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := c.tryLock(true)
	if err != nil {
		t.Fatal(err)
	}
	closeLock(lock)
	if err := c.writeRecord(r); err != nil {
		t.Fatal(err)
	}
}

func TestResultWithAnotherTokenIsNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.attempt(t)
	lostPhase(t, w, record{})
	if err := w.control("apply").writeOutcome(outcome{Token: "another"}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Exec(t.Context(), w.tool(phaseSpec{Phase: "apply", Script: "exit 0"})); !errors.Is(err, ErrLost) {
		t.Errorf("error = %v, want lost", err)
	}
}

func TestPidsAreBelievedOnlyOfTheSameProcessAndBoot(t *testing.T) {
	t.Parallel()
	self, err := readStat(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	boot, err := readBootID(defaultBootID)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		record   record
		sameBoot bool
	}{
		"another start time": {record{BootID: boot, Tool: process{self.PID, self.Start + 1}, Supervisor: process{self.PID, self.Start + 1}, Graceful: true}, true},
		"another boot":       {record{BootID: "another", Tool: self.process, Supervisor: self.process, Graceful: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.attempt(t)
			lostPhase(t, w, c.record)
			// Either of these would end this very process.
			if err := a.signalSupervisor(w.control("apply"), syscall.SIGTERM); err == nil {
				t.Error("signalled a process that is not the supervisor")
			}
			_, err := a.Exec(t.Context(), w.tool(phaseSpec{Phase: "apply", Script: "exit 0", Graceful: true}))
			var lost *LostError
			if !errors.As(err, &lost) || lost.SameBoot != c.sameBoot {
				t.Errorf("error = %v, want lost with same boot %v", err, c.sameBoot)
			}
			if exists(w.control("apply").path("terminated")) {
				t.Error("a process that is not the tool was told to end")
			}
		})
	}
}

func TestAgentAnswersOnlyItsPhase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.attempt(t)
	key := filepath.Join(w.Scratch, "key")
	run(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "fleet", "-f", key)
	pem, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	// The orphan has lost its parents and its environment, but belongs.
	tool := w.tool(phaseSpec{Phase: "play", Script: `ssh-add -l >mine 2>&1
(setsid env -i SSH_AUTH_SOCK=$SSH_AUTH_SOCK sh -c 'sleep 0.2; /usr/bin/ssh-add -l >orphan 2>&1; /usr/bin/touch ready' &)
while [ ! -e go ]; do sleep 0.02; done`})
	tool.AgentKeys = []orchestrator.Secret{orchestrator.NewSecret(string(pem))}
	done := make(chan error, 1)
	go func() { _, err := a.Exec(t.Context(), tool); done <- err }()
	eventually(t, "the tool asked", func() bool { return exists(w.scratch("ready")) })
	out, err := command(nil, "SSH_AUTH_SOCK="+filepath.Join(a.WorkDir, agentSocket), "ssh-add", "-l")
	if err == nil || strings.Contains(out, "ED25519") {
		t.Errorf("a stranger was told %q", out)
	}
	w.touch(t, "go")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for _, who := range []string{"mine", "orphan"} {
		if b, _ := os.ReadFile(w.scratch(who)); !strings.Contains(string(b), "ED25519") {
			t.Errorf("%s: the agent said %q, want the key", who, b)
		}
	}
	if exists(filepath.Join(a.WorkDir, agentSocket)) {
		t.Error("the agent's socket is left")
	}
}

func ExampleLostError() {
	err := error(&LostError{Phase: "apply", SameBoot: true})
	fmt.Println(err, errors.Is(err, ErrLost))
	// Output: the supervisor of phase apply ended without a result true
}
