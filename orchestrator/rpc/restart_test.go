package rpc_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/exocomp/exocomp/orchestrator/rpc/rpctest"
)

// bounded ends a test that waits for what never comes.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestWatchSurvivesRestartsAndSeesEachEventOnce(t *testing.T) {
	svc := rpctest.NewService()
	d := rpctest.Serve(t, svc)
	c := d.Dial()
	seen := make(chan int64)
	enough := errors.New("seen enough")
	done := make(chan error, 1)
	go func() {
		done <- c.Watch(bounded(t), orchestrator.EventFilter{After: 1}, func(e orchestrator.Event) error {
			seen <- e.ID
			if e.ID == 7 {
				return enough
			}
			return nil
		})
	}()
	emit := func() { svc.Emit(orchestrator.Event{Kind: orchestrator.EventJobProgress}) }
	want := int64(2)
	expect := func() {
		t.Helper()
		if got := <-seen; got != want {
			t.Fatalf("saw event %d, want %d", got, want)
		}
		want++
	}
	emit() // 1: before the filter
	emit()
	expect()
	for range 2 {
		d.Stop()
		emit() // while the daemon is away
		d.Start()
		expect()
		emit()
		expect()
	}
	emit()
	expect()
	if err := <-done; err != enough { //nolint:errorlint // it must come back as it is
		t.Errorf("watch = %v, want the function's own error", err)
	}
}

func TestFollowLogSurvivesARestartAndWritesEachByteOnce(t *testing.T) {
	svc := rpctest.NewService()
	d := rpctest.Serve(t, svc)
	c := d.Dial()
	edge(t, svc)
	j, err := c.ApplyWorkspace(t.Context(), "", "edge", false)
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- c.FollowLog(bounded(t), rpc.LogRequest{Job: j.ID, Follow: true}, w)
		_ = w.Close()
	}()
	expect := func(want string) {
		t.Helper()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(r, got); err != nil || string(got) != want {
			t.Fatalf("read %q, %v, want %q", got, err, want)
		}
	}
	svc.AppendLog(j.ID, "planning\n")
	expect("planning\n")
	d.Stop()
	svc.AppendLog(j.ID, "applying\n")
	d.Start()
	expect("applying\n")
	svc.AppendLog(j.ID, "done\n")
	if err := svc.SetJob(j.ID, func(j *orchestrator.Job) { j.State = orchestrator.JobSucceeded }); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(r)
	if err != nil || string(rest) != "done\n" {
		t.Errorf("rest = %q, %v", rest, err)
	}
	if err := <-done; err != nil {
		t.Errorf("follow = %v", err)
	}
	var all bytes.Buffer
	if err := c.FollowLog(t.Context(), rpc.LogRequest{Job: j.ID, Offset: 9}, &all); err != nil || all.String() != "applying\ndone\n" {
		t.Errorf("from offset 9: %q, %v", all.String(), err)
	}
}

func TestWaitsSurviveARestart(t *testing.T) {
	svc := rpctest.NewService()
	d := rpctest.Serve(t, svc)
	c := d.Dial()
	run, err := c.SubmitRun(t.Context(), "", orchestrator.RunProvision, "edge", edge(t, svc))
	if err != nil {
		t.Fatal(err)
	}
	job, err := c.RefreshWorkspace(t.Context(), "", "edge")
	if err != nil {
		t.Fatal(err)
	}
	setJob := func(s orchestrator.JobState) {
		t.Helper()
		if err := svc.SetJob(job.ID, func(j *orchestrator.Job) { j.State = s }); err != nil {
			t.Fatal(err)
		}
	}
	setJob(orchestrator.JobRunning)
	if _, err := c.Drain(t.Context(), false); err != nil {
		t.Fatal(err)
	}

	ctx := bounded(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		r, err := c.Wait(ctx, run.ID)
		if err != nil || r.State != orchestrator.RunFailed {
			t.Errorf("wait for the run: %s, %v", r.State, err)
		}
	})
	wg.Go(func() {
		j, err := c.WaitJob(ctx, job.ID)
		if err != nil || j.State != orchestrator.JobInterrupted {
			t.Errorf("wait for the job: %s, %v", j.State, err)
		}
	})
	wg.Go(func() {
		st, err := c.WaitDrained(ctx)
		if err != nil || st.Running != 0 {
			t.Errorf("wait for the drain: %d running, %v", st.Running, err)
		}
	})
	d.Stop()
	setJob(orchestrator.JobInterrupted)
	d.Start()
	if err := svc.SetRun("edge", func(r *orchestrator.Run) { r.State = orchestrator.RunFailed }); err != nil {
		t.Fatal(err)
	}
	wg.Wait()

	// What is final already is answered at once.
	if r, err := c.Wait(ctx, run.ID); err != nil || r.State != orchestrator.RunFailed {
		t.Errorf("wait again: %s, %v", r.State, err)
	}
	if _, err := c.Drain(ctx, true); err != nil {
		t.Fatal(err)
	}
	if _, err := c.WaitDrained(ctx); !errors.Is(err, orchestrator.ErrConflict) {
		t.Errorf("wait for a drain that was ended: %v, want conflict", err)
	}
}

func TestWaitingIsBoundedByTheReconnectTimeout(t *testing.T) {
	svc := rpctest.NewService()
	d := rpctest.Serve(t, svc)
	c, err := rpc.Dial(t.Context(), rpc.ClientOptions{Socket: d.Socket, ReconnectTimeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	seen := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- c.Watch(bounded(t), orchestrator.EventFilter{}, func(orchestrator.Event) error {
			close(seen)
			return nil
		})
	}()
	svc.Emit(orchestrator.Event{})
	<-seen
	d.Stop()
	if err := <-done; !errors.Is(err, orchestrator.ErrUnavailable) {
		t.Errorf("watch = %v, want unavailable", err)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	svc := rpctest.NewService()
	c := rpctest.Serve(t, svc).Dial()
	run, err := c.SubmitRun(t.Context(), "", orchestrator.RunProvision, "edge", edge(t, svc))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Wait(ctx, run.ID); !errors.Is(err, context.Canceled) {
		t.Errorf("wait = %v, want context.Canceled", err)
	}
}

// A submit whose answer is lost is sent again, and is still one run.
func TestLostAnswerIsAskedForAgain(t *testing.T) {
	svc := &cutting{Service: rpctest.NewService()}
	d := rpctest.Serve(t, svc)
	d.Stop()
	l, err := rpc.Listen(d.Socket, rpc.ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	conns := &conns{Listener: l}
	svc.cut = conns.cut
	d.StartOn(conns)
	c := d.Dial()
	r, err := c.SubmitRun(bounded(t), "", orchestrator.RunProvision, "edge", edge(t, svc))
	if err != nil {
		t.Fatal(err)
	}
	runs, err := c.ListRuns(t.Context(), orchestrator.RunFilter{})
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) != 1 || runs[0].ID != r.ID {
		t.Errorf("runs = %v, want only %s", runs, r.ID)
	}
	if svc.calls != 2 {
		t.Errorf("submitted %d times, want 2", svc.calls)
	}
}

// cutting cuts every connection once a first submit has been carried out.
type cutting struct {
	*rpctest.Service
	cut   func()
	calls int
}

func (s *cutting) SubmitRun(ctx context.Context, key string, kind orchestrator.RunKind, workspace string, spec orchestrator.RunSpec) (orchestrator.Run, error) {
	r, err := s.Service.SubmitRun(ctx, key, kind, workspace, spec)
	if s.calls++; s.calls == 1 {
		s.cut()
	}
	return r, err
}

// conns remembers the connections that it accepted.
type conns struct {
	net.Listener
	mu   sync.Mutex
	list []net.Conn
}

func (l *conns) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.list = append(l.list, c)
	}
	return c, err
}

func (l *conns) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.list {
		_ = c.Close()
	}
}

func TestStopRemovesTheSocket(t *testing.T) {
	d := rpctest.Serve(t, rpctest.NewService())
	d.Stop()
	left, err := filepath.Glob(d.Socket)
	if err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
