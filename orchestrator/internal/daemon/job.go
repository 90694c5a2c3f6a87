package daemon

import (
	"context"
	"errors"
	"io"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// ListJobs implements [rpc.Jobs].
func (d *Daemon) ListJobs(ctx context.Context, filter orchestrator.JobFilter) ([]orchestrator.Job, error) {
	return d.ledger.Jobs(ctx, filter)
}

// GetJob implements [rpc.Jobs].
func (d *Daemon) GetJob(ctx context.Context, id orchestrator.JobID) (orchestrator.Job, error) {
	job, err := d.ledger.Job(ctx, id)
	d.engine.Settled()
	return job, err
}

// RedriveJob implements [rpc.Jobs].
func (d *Daemon) RedriveJob(ctx context.Context, id orchestrator.JobID) (orchestrator.Job, error) {
	job, err := d.ledger.Job(ctx, id)
	if err != nil {
		return job, err
	}
	if err := d.reviewLost(ctx, job.Workspace); err != nil {
		return job, err
	}
	return d.ledger.RedriveJob(ctx, id, rpc.PeerFrom(ctx))
}

// CancelJob implements [rpc.Jobs].
func (d *Daemon) CancelJob(ctx context.Context, id orchestrator.JobID, force bool) (orchestrator.Job, error) {
	return d.ledger.CancelJob(ctx, id, force, rpc.PeerFrom(ctx))
}

// logChunk is how much of a log travels at once.
const logChunk = 64 << 10

// ReadLog implements [rpc.Jobs].
func (d *Daemon) ReadLog(ctx context.Context, req rpc.LogRequest, send func(rpc.LogChunk) error) error {
	job, err := d.awaitStart(ctx, req)
	if err != nil {
		return err
	}
	if job.Attempt.ID == "" {
		return nil // it never ran, or does not yet and nobody wants to wait
	}
	log, err := jobs.OpenLog(d.cfg.DataDir, job.Attempt.ID)
	if err != nil {
		return err
	}
	return d.sendLog(ctx, log, req, send)
}

// awaitStart returns the job as soon as it has an attempt, or will never have
// one, or at once where the reader does not follow.
func (d *Daemon) awaitStart(ctx context.Context, req rpc.LogRequest) (orchestrator.Job, error) {
	for {
		changed := d.ledger.Changed()
		job, err := d.ledger.Job(ctx, req.Job)
		if err != nil || !req.Follow || job.Attempt.ID != "" || job.State.Final() {
			return job, err
		}
		select {
		case <-ctx.Done():
			return job, ctx.Err()
		case <-changed:
		}
	}
}

// sendLog sends what there is and, for a follower, what comes until the job is
// final. A job's last lines are written before it becomes final, so one more
// look after that sees all of them.
func (d *Daemon) sendLog(ctx context.Context, log *jobs.Log, req rpc.LogRequest, send func(rpc.LogChunk) error) error {
	off := req.Offset
	buf := make([]byte, logChunk)
	for {
		changed := d.ledger.Changed()
		job, err := d.ledger.Job(ctx, req.Job)
		if err != nil {
			return err
		}
		if off, err = sendUntilEnd(log, off, buf, send); err != nil {
			return err
		}
		if !req.Follow || job.State.Final() {
			return nil
		}
		if err := awaitMore(ctx, log, off, changed); err != nil {
			return err
		}
	}
}

func sendUntilEnd(log *jobs.Log, off int64, buf []byte, send func(rpc.LogChunk) error) (int64, error) {
	for {
		n, next, err := log.Read(buf, off)
		if n > 0 {
			if err := send(rpc.LogChunk{Offset: next - int64(n), Data: buf[:n]}); err != nil {
				return off, err
			}
		}
		off = next
		if errors.Is(err, io.EOF) {
			return off, nil
		}
		if err != nil {
			return off, err
		}
	}
}

// awaitMore returns when the log has grown or the ledger has changed.
func awaitMore(ctx context.Context, log *jobs.Log, off int64, changed <-chan struct{}) error {
	wait, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-changed:
			cancel()
		case <-stop:
		}
	}()
	if err := log.Wait(wait, off); err != nil && wait.Err() == nil {
		return err
	}
	return ctx.Err()
}
