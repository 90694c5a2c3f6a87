package daemon

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// ListJobs implements [rpc.Jobs].
func (d *Daemon) ListJobs(ctx context.Context, filter orchestrator.JobFilter) ([]orchestrator.Job, error) {
	jobs, err := d.ledger.Jobs(ctx, filter)
	return settled(ctx, d, jobs, err)
}

// GetJob implements [rpc.Jobs].
func (d *Daemon) GetJob(ctx context.Context, id orchestrator.JobID) (orchestrator.Job, error) {
	job, err := d.ledger.Job(ctx, id)
	return settled(ctx, d, job, err)
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
	if job.Kind == orchestrator.JobPlaybookRun && job.State == orchestrator.JobInterrupted && job.RedrivenBy == "" {
		if _, err := d.engine.StandingInventory(ctx, job.Workspace); err != nil {
			return job, err
		}
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
	for {
		changed := d.ledger.Changed()
		job, err := d.ledger.Job(ctx, req.Job)
		if err != nil {
			return err
		}
		var later <-chan time.Time
		if job.Attempt.ID != "" {
			log, err := jobs.OpenLog(d.cfg.DataDir, job.Attempt.ID)
			switch {
			case err == nil:
				return d.sendLog(ctx, log, req, send)
			case !errors.Is(err, orchestrator.ErrNotFound):
				return err
			case refusedAtClaim(job):
				return sendRefusal(job, req, send)
			case job.State.Final():
				return err
			}
			later = time.After(logLater) // it is claimed and about to begin
		}
		if !req.Follow || job.State.Final() {
			return nil // it never ran, or does not yet and nobody wants to wait
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-later:
		}
	}
}

// logLater is how soon a log is looked for again that a worker is about to begin.
const logLater = 100 * time.Millisecond

// refusedAtClaim reports whether a job's turn came and it was not to be done any
// more: it began and ended in one transaction.
func refusedAtClaim(j orchestrator.Job) bool {
	return j.State == orchestrator.JobFailed && j.StartedAt.Equal(j.FinishedAt)
}

// sendRefusal stands for the log of a job that was refused when its turn came.
func sendRefusal(j orchestrator.Job, req rpc.LogRequest, send func(rpc.LogChunk) error) error {
	if req.Offset > 0 {
		return nil
	}
	return send(rpc.LogChunk{Data: []byte("exocomp: refused before anything was started: " + j.Failure.Err().Error() + "\n")})
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
