package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/exocomp/exocomp/orchestrator"
)

// provisionRow is a resource's claim with what the domain does not show.
type provisionRow struct {
	orchestrator.Provision
	owner    string // fingerprint of the resource's token
	answered bool   // a client was told of a success: the resource is in a state
	places   string // digest of where its hosts are; empty where the daemon applies
}

// OwnerFingerprint is all that the ledger keeps of a resource's token.
func OwnerFingerprint(token orchestrator.Secret) string {
	sum := sha256.Sum256([]byte(token.Reveal()))
	return hex.EncodeToString(sum[:])
}

// Provision returns the resource that has a workspace.
func (l *Ledger) Provision(ctx context.Context, workspace string) (p orchestrator.Provision, err error) {
	err = l.read(ctx, "read provision", func(q querier) error {
		row, found, err := provisionOf(ctx, q, workspace)
		if err == nil && !found {
			err = orchestrator.Errorf(orchestrator.CodeNotFound, "no exocomp_provision has workspace %s", workspace)
		}
		p = row.Provision
		return err
	})
	return p, err
}

const provisionSelect = `
	SELECT
		workspace,
		owner,
		handed_over,
		succeeded,
		answered,
		released,
		places,
		run_id,
		abandon_at,
		leave_job,
		updated_at
	FROM provision`

func provisionOf(ctx context.Context, q querier, workspace string) (provisionRow, bool, error) {
	return one(ctx, q, scanProvision, provisionSelect+` WHERE workspace = ?`, workspace)
}

func scanProvision(row scanner) (p provisionRow, err error) {
	err = row.Scan(&p.Workspace, &p.owner, &p.HandedOver, &p.Succeeded, &p.answered, &p.Released, &p.places, opt(&p.Run),
		&instant{&p.AbandonAt}, opt(&p.LeaveJob), &instant{&p.UpdatedAt})
	return p, err
}

// putProvision stores p as it stands.
func (t *tx) putProvision(ctx context.Context, p provisionRow) error {
	return t.exec(ctx, `
		INSERT INTO provision (
			workspace,
			owner,
			handed_over,
			succeeded,
			answered,
			released,
			places,
			run_id,
			abandon_at,
			leave_job,
			updated_at
		) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (workspace) DO UPDATE SET
			owner = excluded.owner,
			handed_over = excluded.handed_over,
			succeeded = excluded.succeeded,
			answered = excluded.answered,
			released = excluded.released,
			places = excluded.places,
			run_id = excluded.run_id,
			abandon_at = excluded.abandon_at,
			leave_job = excluded.leave_job,
			updated_at = excluded.updated_at`,
		p.Workspace, p.owner, p.HandedOver, p.Succeeded, p.answered, p.Released, p.places, null(p.Run), nanos(p.AbandonAt),
		null(p.LeaveJob), nanos(t.now))
}

// proveProvision notes that a chain of the run's resource has succeeded.
func (t *tx) proveProvision(ctx context.Context, run *orchestrator.Run) error {
	return t.exec(ctx, `
		UPDATE provision SET succeeded = 1, abandon_at = NULL
		WHERE workspace = ? AND run_id = ?`, run.Workspace, run.ID)
}

// AnswerProvision notes that the resource's client is being told of its success.
// Until then the resource may be in no state: a tofu that was killed, or whose
// create timed out, makes it anew.
func (l *Ledger) AnswerProvision(ctx context.Context, workspace string, owner orchestrator.Secret) error {
	return l.write(ctx, "answer provision", func(t *tx) error {
		return t.exec(ctx, `
			UPDATE provision SET answered = 1
			WHERE workspace = ? AND owner = ? AND succeeded = 1`, workspace, OwnerFingerprint(owner))
	})
}

// Ensure is an [orchestrator.EnsureRun] with what the daemon made of it.
type Ensure struct {
	orchestrator.EnsureRun
	Handed *Handed // of its inventory; nil: the daemon applies
	Sealed []byte  // its environment, sealed; empty: none
	// Alive reports whether a client of that owner follows its run now.
	Alive func(owner string) bool
}

// sealedEnv is the kind under which the environment of a resource's playbooks
// is sealed, by the workspace's name.
const sealedEnv = "provision-env"

// SealedEnv returns the sealed environment of the playbooks of the resource that
// has a workspace; the error is [orchestrator.CodeNotFound] where it has none.
func (l *Ledger) SealedEnv(ctx context.Context, workspace string) ([]byte, error) {
	return l.Sealed(ctx, sealedEnv, workspace)
}

// EnsureRun gives the workspace to the resource, unless it is another's, and
// answers with the run that does what it asks for: one that does it, a failed one
// resumed, or a new one; or, as waiting, with the one that must end first.
func (l *Ledger) EnsureRun(ctx context.Context, e Ensure) (out orchestrator.Ensured, err error) {
	if err := e.Validate(); err != nil {
		return out, err
	}
	err = l.write(ctx, "ensure run", func(t *tx) error {
		w, err := t.provisionWorkspace(ctx, e)
		if err != nil {
			return err
		}
		p, was, err := t.takeProvision(ctx, e)
		if err != nil {
			return err
		}
		if out, err = t.ensured(ctx, w, &p, was, e); err != nil {
			return err
		}
		return t.putProvision(ctx, p)
	})
	if err != nil {
		return orchestrator.Ensured{}, err
	}
	return out, nil
}

// provisionWorkspace returns the workspace that the resource names: registered
// where the daemon applies it, and otherwise only a name, which it makes.
func (t *tx) provisionWorkspace(ctx context.Context, e Ensure) (w orchestrator.Workspace, err error) {
	w, found, err := findWorkspace(ctx, t, e.Workspace)
	switch {
	case err != nil:
		return w, err
	case e.Handed == nil && (!found || w.HandedOver()):
		return w, orchestrator.Errorf(orchestrator.CodeNotFound, "there is no workspace %q that the daemon could apply", e.Workspace).
			WithHint("register it: exocomp workspace add %s DIR; or hand its hosts over: set the attribute inventory", e.Workspace)
	case e.Handed != nil && found && !w.HandedOver():
		return w, orchestrator.Errorf(orchestrator.CodeConflict,
			"workspace %s is registered (%s): %s belongs to its own applies", w.Name, w.Dir, orchestrator.InventoryName(w.Name)).
			WithHint("leave the attribute inventory out, so that the daemon applies it, or give another workspace name")
	}
	if err := refuseParked(ctx, t, e.Workspace); err != nil || found {
		return w, err
	}
	w = orchestrator.Workspace{Name: e.Workspace, Approval: orchestrator.ApprovalDestructive, CreatedAt: t.now, UpdatedAt: t.now}
	if err := t.insertWorkspace(ctx, w); err != nil {
		return w, err
	}
	return w, t.event(ctx, orchestrator.Event{
		Kind:      orchestrator.EventWorkspaceAdded,
		Workspace: w.Name,
		Message:   "workspace added: its hosts are handed over by an exocomp_provision",
		By:        e.By,
	})
}

// takeProvision gives the workspace to the resource that asks, and returns the
// claim as it is to be stored and as it was.
func (t *tx) takeProvision(ctx context.Context, e Ensure) (p, was provisionRow, err error) {
	owner := OwnerFingerprint(e.Owner)
	was, had, err := provisionOf(ctx, t, e.Workspace)
	if err != nil {
		return p, was, err
	}
	p = was
	how := ""
	switch {
	case had && was.owner == owner:
	case !had:
		how = "taken"
	case e.Claim:
		how = "taken by an import"
	case was.Released:
		how = "taken after a create that did not succeed"
	case !was.answered && was.places == e.placesDigest() && !e.Alive(was.owner):
		how = "adopted: nobody was told of a success yet, and its hosts are the same"
	default:
		return p, was, orchestrator.Errorf(orchestrator.CodeConflict, "workspace %s belongs to another exocomp_provision", e.Workspace).
			WithHint("name every host in one exocomp_provision (for_each belongs on the machines), give this one another workspace, or take it over: tofu import ADDRESS %s", e.Workspace)
	}
	p.Workspace, p.owner, p.HandedOver = e.Workspace, owner, e.Handed != nil
	p.Released, p.AbandonAt = false, noTime
	if how == "" {
		return p, was, nil
	}
	return p, was, t.event(ctx, orchestrator.Event{
		Kind:      orchestrator.EventProvisionTaken,
		Workspace: e.Workspace,
		Message:   orchestrator.InventoryName(e.Workspace) + " " + how,
		By:        e.By,
	})
}

func (e Ensure) placesDigest() string {
	if e.Handed == nil {
		return ""
	}
	return orchestrator.PlacesDigest(e.Handed.Places)
}

// ensured finds or makes the run that does what e asks for, and notes it in p.
func (t *tx) ensured(ctx context.Context, w orchestrator.Workspace, p *provisionRow, was provisionRow, e Ensure) (out orchestrator.Ensured, err error) {
	run, found, err := t.candidate(ctx, *p, e)
	if err != nil {
		return out, err
	}
	if found {
		same, err := t.sameWork(ctx, run, e)
		if err != nil {
			return out, err
		}
		switch {
		case !run.State.Final() && same:
			p.Run, out.Run = run.ID, run
			return out, nil
		case !run.State.Final():
			out.Run, out.Waiting = run, true
			return out, nil
		case run.State == orchestrator.RunSucceeded && same && !was.Released:
			p.Succeeded, p.answered = true, true
			p.places = e.placesDigest()
			p.Run, out.Run = run.ID, run
			return out, nil
		case run.State == orchestrator.RunFailed && was.places == e.placesDigest():
			resumed, err := t.resumeFor(ctx, run, e)
			if err != nil || resumed.ID != "" {
				p.places = e.placesDigest()
				p.Run, out.Run = resumed.ID, resumed
				return out, err
			}
		}
	}
	origin := orchestrator.OriginRun
	if e.Handed != nil {
		origin = orchestrator.OriginCaller
	}
	out.Run, err = t.submitRun(ctx, w, orchestrator.NewRun{
		Kind: orchestrator.RunProvision, Workspace: w.Name, Spec: e.Spec, By: e.By, Resource: true, Origin: origin,
	}, given{handed: e.Handed})
	if err != nil {
		return out, err
	}
	p.Run, p.places = out.Run.ID, e.placesDigest()
	return out, t.putSealed(ctx, sealedEnv, w.Name, e.Sealed)
}

// candidate returns the run that may be the answer: the resource's newest one
// or, for an import, the workspace's.
func (t *tx) candidate(ctx context.Context, p provisionRow, e Ensure) (run orchestrator.Run, found bool, err error) {
	if e.Claim {
		runs, err := selectRuns(ctx, t, ` WHERE workspace = ? ORDER BY id DESC LIMIT 1`, e.Workspace)
		if err != nil || len(runs) == 0 {
			return run, false, err
		}
		return runs[0], runs[0].Kind == orchestrator.RunProvision, nil
	}
	if p.Run == "" {
		return run, false, nil
	}
	run, err = runByID(ctx, t, p.Run)
	return run, err == nil, err
}

// sameWork reports whether a run does, or did, what e asks for. One that somebody
// is cancelling does not.
func (t *tx) sameWork(ctx context.Context, run orchestrator.Run, e Ensure) (bool, error) {
	if !run.Spec.SameWork(e.Spec, e.Claim) {
		return false, nil
	}
	for _, s := range run.Steps {
		if s.State != orchestrator.StepRunning {
			continue
		}
		if j, err := jobByID(ctx, t, s.Job); err != nil || j.CancelRequested {
			return false, err
		}
	}
	if e.Handed == nil {
		return true, nil
	}
	digest := run.Inventory
	if digest == "" {
		h, _, err := handedOf(ctx, t, run.ID)
		if err != nil {
			return false, err
		}
		digest = h.Inventory.Digest
	}
	return digest == e.Handed.Inventory.Digest, nil
}

// resumeFor continues a failed run with what e asks for now, in its turn. A run
// that is history is not continued: the returned one is empty.
func (t *tx) resumeFor(ctx context.Context, run orchestrator.Run, e Ensure) (orchestrator.Run, error) {
	w, err := resumable(ctx, t, &run)
	if orchestrator.CodeOf(err) == orchestrator.CodeConflict {
		return orchestrator.Run{}, nil
	}
	if err != nil {
		return orchestrator.Run{}, err
	}
	if run.FailedStep().Kind == orchestrator.StepTofuApply {
		if err := refuseLost(w, false); err != nil {
			return orchestrator.Run{}, err
		}
	}
	if e.Handed != nil && e.Handed.Inventory.Digest != run.Inventory {
		if err := t.recordHanded(ctx, &run, *e.Handed); err != nil {
			return orchestrator.Run{}, err
		}
	}
	if err := t.resume(ctx, &run, orchestrator.ResumeRun{Run: run.ID, Spec: e.Spec, By: e.By}); err != nil {
		return orchestrator.Run{}, err
	}
	if err := t.putSealed(ctx, sealedEnv, w.Name, e.Sealed); err != nil {
		return orchestrator.Run{}, err
	}
	return runByID(ctx, t, run.ID)
}

// provisionEvent tells of a resource.
func (t *tx) provisionEvent(ctx context.Context, p provisionRow, kind orchestrator.EventKind, by orchestrator.Peer, format string, args ...any) error {
	return t.event(ctx, orchestrator.Event{
		Kind: kind, Workspace: p.Workspace, Run: p.Run, Message: fmt.Sprintf(format, args...), By: by,
	})
}
