package ledger

import (
	"context"
	"fmt"

	"github.com/exocomp/exocomp/orchestrator"
)

// Watched returns the digest of the configuration of a watched workspace that
// was dealt with last. It is empty before the first look: of a workspace that was
// not watched before, or had another directory.
func (l *Ledger) Watched(ctx context.Context, workspace string) (digest string, err error) {
	err = l.read(ctx, "read watched configuration", func(q querier) (err error) {
		digest, err = watchedOf(ctx, q, workspace)
		return err
	})
	return digest, err
}

func watchedOf(ctx context.Context, q querier, workspace string) (string, error) {
	digest, found, err := one(ctx, q, scanText[string], `SELECT watched FROM workspace WHERE name = ? AND watch = 1`, workspace)
	if err == nil && !found {
		err = orchestrator.Errorf(orchestrator.CodeNotFound, "no workspace %q is watched", workspace)
	}
	return digest, err
}

// WatchFrom records the configuration from which on changes of a workspace are
// applied. It does nothing where one is recorded.
func (l *Ledger) WatchFrom(ctx context.Context, workspace, digest string, files int) error {
	return l.write(ctx, "watch workspace", func(t *tx) error {
		if last, err := watchedOf(ctx, t, workspace); err != nil || last != "" {
			return err
		}
		if err := t.setWatched(ctx, workspace, digest); err != nil {
			return err
		}
		return t.event(ctx, orchestrator.Event{
			Kind:      orchestrator.EventWorkspaceWatched,
			Workspace: workspace,
			Message:   fmt.Sprintf("%d file(s) of the configuration are watched from now on", files),
		})
	})
}

// ApplyWatched queues an apply for a configuration that has changed; why says
// what has. The digest and the job are one transaction, so that a change is
// applied once whatever dies. A job that still waits in the queue for an earlier
// change will read this one too: it is returned, and no other queued. The errors
// are those of [Ledger.SubmitJob], and leave the change to be dealt with.
func (l *Ledger) ApplyWatched(ctx context.Context, workspace, digest, why string) (orchestrator.Job, error) {
	var j jobRow
	err := l.write(ctx, "apply watched workspace", func(t *tx) error {
		last, err := watchedOf(ctx, t, workspace)
		if err != nil {
			return err
		}
		id, found, err := one(ctx, t, scanText[orchestrator.JobID], `
			SELECT id FROM job
			WHERE workspace = ? AND kind = 'workspace-apply' AND state = 'queued' AND spec ->> 'watched'
			ORDER BY id LIMIT 1`, workspace)
		switch {
		case err != nil:
			return err
		case found:
			j, err = jobByID(ctx, t, id)
		case last == digest:
			return nil
		default:
			j, err = t.submitJob(ctx, orchestrator.NewJob{
				Kind: orchestrator.JobWorkspaceApply, Workspace: workspace, Spec: orchestrator.JobSpec{Watched: true}, Why: why,
			}, orchestrator.Job{})
		}
		if err != nil {
			return err
		}
		return t.setWatched(ctx, workspace, digest)
	})
	return j.public(), err
}

// NoteWatched records, for people, why a change of a watched configuration is
// not applied.
func (l *Ledger) NoteWatched(ctx context.Context, workspace, message string) error {
	return l.write(ctx, "note watched workspace", func(t *tx) error {
		if _, err := watchedOf(ctx, t, workspace); err != nil {
			return err
		}
		return t.event(ctx, orchestrator.Event{
			Kind: orchestrator.EventWorkspaceWatched, Workspace: workspace, Message: message, Warning: true,
		})
	})
}

func (t *tx) setWatched(ctx context.Context, workspace, digest string) error {
	return t.exec(ctx, `UPDATE workspace SET watched = ? WHERE name = ?`, digest, workspace)
}
