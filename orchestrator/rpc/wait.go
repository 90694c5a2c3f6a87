package rpc

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"

	"github.com/exocomp/exocomp/orchestrator"
)

// Delays between two tries to reach a daemon that is away.
const (
	minDelay = 50 * time.Millisecond
	maxDelay = time.Second
)

// Watch calls fn for each event after filter.After, in order and each once,
// until ctx ends or fn returns an error, which it returns as it is. It outlives
// restarts of the daemon, each for as long as [ClientOptions] say.
func (c *Client) Watch(ctx context.Context, filter orchestrator.EventFilter, fn func(orchestrator.Event) error) error {
	return c.persist(ctx, func(connected func()) error {
		return c.watchEvents(ctx, filter, connected, func(e orchestrator.Event) error {
			if err := fn(e); err != nil {
				return ofCaller(err)
			}
			filter.After = e.ID
			return nil
		})
	})
}

// FollowLog writes a log to w, or with req.Follow what comes until the job is
// final. It outlives restarts of the daemon as [Client.Watch] does, writing each
// byte once.
func (c *Client) FollowLog(ctx context.Context, req LogRequest, w io.Writer) error {
	return c.persist(ctx, func(connected func()) error {
		return c.readLog(ctx, req, connected, func(chunk LogChunk) error {
			if _, err := w.Write(chunk.Data); err != nil {
				return ofCaller(err)
			}
			req.Offset = chunk.Offset + int64(len(chunk.Data))
			return nil
		})
	})
}

// Wait returns the run once its state is final, whatever it is. It outlives
// restarts of the daemon as [Client.Watch] does.
func (c *Client) Wait(ctx context.Context, id orchestrator.RunID) (run orchestrator.Run, err error) {
	err = c.await(ctx, orchestrator.EventFilter{Run: id}, []orchestrator.EventKind{orchestrator.EventRunFinished},
		func() (bool, error) {
			run, err = c.GetRun(ctx, string(id))
			return run.State.Final(), err
		})
	return run, err
}

// WaitJob returns the job once its state is final, whatever it is. It outlives
// restarts of the daemon as [Client.Watch] does.
func (c *Client) WaitJob(ctx context.Context, id orchestrator.JobID) (job orchestrator.Job, err error) {
	err = c.await(ctx, orchestrator.EventFilter{Job: id}, jobEnds, func() (bool, error) {
		job, err = c.GetJob(ctx, id)
		return job.State.Final(), err
	})
	return job, err
}

// jobEnds are the events after which a job may be final.
var jobEnds = []orchestrator.EventKind{orchestrator.EventJobFinished, orchestrator.EventJobInterrupted}

// WaitDrained returns once the daemon drains and no job runs any more. The
// error is [orchestrator.CodeConflict] where somebody ended the drain.
func (c *Client) WaitDrained(ctx context.Context) (st Status, err error) {
	err = c.persist(ctx, func(func()) error {
		st, err = c.GetStatus(ctx)
		return err
	})
	if err != nil {
		return st, err
	}
	kinds := append([]orchestrator.EventKind{orchestrator.EventDrainEnded}, jobEnds...)
	err = c.await(ctx, orchestrator.EventFilter{After: st.LastEvent}, kinds, func() (bool, error) {
		if st, err = c.GetStatus(ctx); err != nil {
			return false, err
		}
		if !st.Draining {
			return false, orchestrator.Errorf(orchestrator.CodeConflict, "the daemon does not drain (any more)").
				WithHint("begin again: exocomp drain")
		}
		return st.Running == 0, nil
	})
	return st, err
}

// errDone ends a watch that has seen enough.
var errDone = errors.New("done")

// await asks done now, after each connection, and after each event of the
// kinds that the filter selects, until it says yes. Watching from filter.After
// and asking again after connecting leaves no moment in which the last event
// can be missed.
func (c *Client) await(ctx context.Context, filter orchestrator.EventFilter, kinds []orchestrator.EventKind, done func() (bool, error)) error {
	relevant := make(map[orchestrator.EventKind]bool, len(kinds))
	for _, k := range kinds {
		relevant[k] = true
	}
	ask := func() error {
		yes, err := done()
		if err == nil && yes {
			return errDone
		}
		return err
	}
	err := c.persist(ctx, func(connected func()) error {
		if err := ask(); err != nil {
			return err
		}
		return c.watchEvents(ctx, filter, connected, func(e orchestrator.Event) error {
			filter.After = e.ID
			if !relevant[e.Kind] {
				return nil
			}
			return ask()
		})
	})
	if errors.Is(err, errDone) {
		return nil
	}
	return err
}

// callerError marks an error of the caller's own function: it ends the call
// whatever its code says.
type callerError struct{ error }

// ofCaller marks err, nil for nil.
func ofCaller(err error) error {
	if err == nil {
		return nil
	}
	return callerError{err}
}

// persist calls call again while it fails as unavailable and one absence of the
// daemon is shorter than the reconnect timeout. call says when it got through.
func (c *Client) persist(ctx context.Context, call func(connected func()) error) error {
	var away time.Time // since when the daemon is away; zero: it is there
	delay := minDelay
	for {
		err := call(func() { away, delay = time.Time{}, minDelay })
		if e, ok := errors.AsType[callerError](err); ok {
			return e.error
		}
		if !errors.Is(err, orchestrator.ErrUnavailable) {
			return err
		}
		if away.IsZero() {
			away = time.Now()
		}
		if time.Since(away) > c.opts.ReconnectTimeout {
			return err
		}
		select {
		case <-ctx.Done():
			return domainError(ctx, ctx.Err())
		case <-time.After(delay):
		}
		delay = min(2*delay, maxDelay)
	}
}

// submit makes a call that may be repeated, and repeats it while the answer is
// lost on the way. What the daemon itself answers stands.
func submit[Req, Resp any](ctx context.Context, c *Client, call func(context.Context, Req, ...grpc.CallOption) (Resp, error), req Req) (resp Resp, err error) {
	err = c.persist(ctx, func(func()) error {
		resp, err = call(ctx, req)
		if err != nil && !errors.Is(err, errWentAway) {
			return callerError{err}
		}
		return err
	})
	return resp, err
}

// receive reads a stream to its end. connected is called once the daemon has
// accepted it, each for every message.
func receive[M any](ctx context.Context, open func(context.Context) (grpc.ServerStreamingClient[M], error), connected func(), each func(*M) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the stream when each fails
	stream, err := open(ctx)
	if err != nil {
		return domainError(ctx, err)
	}
	if md, err := stream.Header(); err == nil && md != nil {
		connected()
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return domainError(ctx, err)
		}
		if err := each(m); err != nil {
			return err
		}
	}
}
