package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

// noTime is the zero time, which is stored as NULL.
var noTime time.Time

// End is an [orchestrator.EndProvision] with what the daemon adds.
type End struct {
	orchestrator.EndProvision
	// Empty is the inventory, without hosts, that takes the place of one which
	// the resource handed over.
	Empty orchestrator.Inventory
	// Again submits the leave play anew where it failed. Only the first of the
	// calls by which one client follows an end says so.
	Again bool
}

// EndProvision takes an end one step further and says how far it has come. The
// error is that of the leave play where it failed.
func (l *Ledger) EndProvision(ctx context.Context, e End) (out orchestrator.ProvisionEnd, err error) {
	if err := e.Validate(); err != nil {
		return out, err
	}
	var failed error
	err = l.write(ctx, "end provision", func(t *tx) (err error) {
		p, found, err := provisionOf(ctx, t, e.Workspace)
		switch {
		case err != nil:
			return err
		case !found || !e.isOf(p):
			out.Ended, out.Stranger = true, true
			return nil
		case e.Owner.IsZero() && p.Succeeded && !p.answered:
			out.Ended = true // a create that its client gave up: the next one takes the run as its answer
			return nil
		case !p.Succeeded:
			out.Ended = true
			return t.releaseProvision(ctx, p, e)
		}
		if out.Run, err = t.cancelLive(ctx, p, e.By); err != nil || out.Run != "" {
			return err
		}
		if out.Job, failed, err = t.leave(ctx, &p, e); err != nil || failed != nil || out.Job != "" {
			return err
		}
		out.Ended = true
		return t.endProvision(ctx, p, e)
	})
	if err != nil {
		return orchestrator.ProvisionEnd{}, err
	}
	return out, failed
}

// isOf reports whether the resource that ends is the one that has p.
func (e End) isOf(p provisionRow) bool {
	if e.Owner.IsZero() {
		return p.Run != "" && p.Run == e.Run
	}
	return p.owner == OwnerFingerprint(e.Owner)
}

// releaseProvision lets go of a resource whose chain never succeeded. A create
// of the same hosts takes its run up; a live one goes on for a while.
func (t *tx) releaseProvision(ctx context.Context, p provisionRow, e End) error {
	if p.Released {
		return nil
	}
	p.Released = true
	text := "released: no chain of the resource had succeeded"
	if p.Run != "" {
		run, err := runByID(ctx, t, p.Run)
		if err != nil {
			return err
		}
		if !run.State.Final() {
			p.AbandonAt = t.now.Add(orchestrator.AbandonAfter)
			text += "; its run is cancelled unless a create claims it within " + orchestrator.AbandonAfter.String()
		}
	}
	if err := t.putProvision(ctx, p); err != nil {
		return err
	}
	return t.provisionEvent(ctx, p, orchestrator.EventProvisionReleased, e.By, "%s", text)
}

// cancelLive asks the resource's run to end, and returns it while it has not.
func (t *tx) cancelLive(ctx context.Context, p provisionRow, by orchestrator.Peer) (orchestrator.RunID, error) {
	if p.Run == "" {
		return "", nil
	}
	run, err := runByID(ctx, t, p.Run)
	if err != nil || run.State.Final() {
		return "", err
	}
	if run, err = t.cancelRun(ctx, run.ID, false, by); err != nil {
		return "", err
	}
	if run, err = runByID(ctx, t, run.ID); err != nil || run.State.Final() {
		return "", err
	}
	return run.ID, nil
}

// leave returns the leave play while it has not ended, and how it failed.
func (t *tx) leave(ctx context.Context, p *provisionRow, e End) (id orchestrator.JobID, failed, err error) {
	if e.Leave == nil {
		return "", nil, nil
	}
	if p.LeaveJob != "" {
		j, err := jobByID(ctx, t, p.LeaveJob)
		switch {
		case err != nil:
			return "", nil, err
		case !j.State.Final():
			return j.ID, nil, nil
		case j.State == orchestrator.JobSucceeded:
			return "", nil, nil
		case !e.Again:
			return j.ID, leaveFailed(j.Job), nil
		}
	}
	n := orchestrator.NewJob{
		Kind: orchestrator.JobLeavePlay, Workspace: p.Workspace, Spec: orchestrator.JobSpec{Play: e.Leave}, By: e.By,
	}
	j, err := t.submitJob(ctx, n, orchestrator.Job{})
	if err != nil {
		return "", nil, err
	}
	p.LeaveJob = j.ID
	return j.ID, nil, t.putProvision(ctx, *p)
}

func leaveFailed(j orchestrator.Job) error {
	var why *orchestrator.Error
	if !errors.As(j.Failure.Err(), &why) {
		why = orchestrator.ErrFailed
	}
	return orchestrator.Errorf(orchestrator.CodeFailed, "the leave play (job %s) is %s: %s", j.ID, j.State, why.Message).
		WithHint("see it: exocomp jobs logs %s; then destroy again, or without destroy_playbook", j.ID)
}

// endProvision forgets the resource. What it handed over is nobody's any more.
func (t *tx) endProvision(ctx context.Context, p provisionRow, e End) error {
	if err := t.putSealed(ctx, sealedEnv, p.Workspace, nil); err != nil {
		return err
	}
	if p.HandedOver {
		about := orchestrator.Event{Workspace: p.Workspace, By: e.By}
		if err := t.captureInventory(ctx, about, e.Empty); err != nil {
			return err
		}
		if err := t.leavePins(ctx, about, nil, "its exocomp_provision was destroyed"); err != nil {
			return err
		}
	}
	if err := t.exec(ctx, `DELETE FROM provision WHERE workspace = ?`, p.Workspace); err != nil {
		return err
	}
	return t.provisionEvent(ctx, p, orchestrator.EventProvisionEnded, e.By, "the exocomp_provision was destroyed")
}

// AbandonRuns cancels the runs of released resources that nobody claimed in
// time, and returns when the next one is due; zero: there is none.
func (l *Ledger) AbandonRuns(ctx context.Context) (next time.Time, err error) {
	due, err := l.abandonAt(ctx)
	if err != nil || len(due) == 0 || due[0].AbandonAt.After(l.clock.now()) {
		if len(due) > 0 {
			next = due[0].AbandonAt
		}
		return next, err
	}
	err = l.write(ctx, "abandon runs", func(t *tx) error {
		rows, err := collect(ctx, t, scanProvision, provisionSelect+` WHERE abandon_at <= ?`, nanos(t.now))
		if err != nil {
			return err
		}
		for _, p := range rows {
			if _, err := t.cancelLive(ctx, p, orchestrator.Peer{Name: "exocomp, because no create claimed it"}); err != nil {
				return err
			}
			p.AbandonAt = noTime
			if err := t.putProvision(ctx, p); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return noTime, err
	}
	if due, err = l.abandonAt(ctx); err == nil && len(due) > 0 {
		next = due[0].AbandonAt
	}
	return next, err
}

// abandonAt returns the resources whose runs are to be cancelled, soonest first.
func (l *Ledger) abandonAt(ctx context.Context) (rows []provisionRow, err error) {
	err = l.read(ctx, "read provisions", func(q querier) (err error) {
		rows, err = collect(ctx, q, scanProvision, provisionSelect+` WHERE abandon_at IS NOT NULL ORDER BY abandon_at`)
		return err
	})
	return rows, err
}
