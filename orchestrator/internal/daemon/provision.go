package daemon

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/ledger"
	"github.com/exocomp/exocomp/orchestrator/inventory"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// EnsureRun implements [rpc.Provisions].
func (d *Daemon) EnsureRun(ctx context.Context, e orchestrator.EnsureRun, send func(orchestrator.Ensured) error) error {
	e.By = rpc.PeerFrom(ctx)
	ensure, err := d.prepareEnsure(e)
	if err != nil {
		return err
	}
	caller, err := d.caller(ctx, e.Attempt)
	if err != nil {
		return err
	}
	if err := d.refuseOwnWorkspace(ctx, e, caller); err != nil {
		return err
	}
	if e.Inventory == nil {
		if err := d.reviewLost(ctx, e.Workspace); err != nil && !errors.Is(err, orchestrator.ErrNotFound) {
			return err
		}
	}
	owner := ledger.OwnerFingerprint(e.Owner)
	defer d.followers.follow(owner)()
	for {
		out, err := d.ensure(ctx, ensure)
		if err != nil {
			return err
		}
		if caller != nil && !out.Run.State.Final() {
			return d.deferred(out, *caller, send)
		}
		out.Run, err = d.followRun(ctx, out.Run, func(run orchestrator.Run) error {
			out.Run = run
			if run.State == orchestrator.RunSucceeded && !out.Waiting {
				if err := d.ledger.AnswerProvision(ctx, e.Workspace, e.Owner); err != nil {
					return err
				}
			}
			return send(out)
		})
		if err != nil || !out.Waiting {
			return err
		}
		ensure.Claim = false // it is the resource's by now
	}
}

// prepareEnsure checks what is asked for against this machine and makes of it
// what the ledger keeps: a mistake is refused before anything is created.
func (d *Daemon) prepareEnsure(e orchestrator.EnsureRun) (ledger.Ensure, error) {
	out := ledger.Ensure{EnsureRun: e, Alive: d.followers.follows}
	if err := e.Validate(); err != nil {
		return out, err
	}
	if err := d.checkSpec(orchestrator.RunProvision, &out.Spec); err != nil {
		return out, err
	}
	var err error
	if e.Inventory != nil {
		if out.Handed, err = d.handed(e); err != nil {
			return out, err
		}
	}
	if len(e.Env) > 0 {
		out.Sealed, err = d.sealEnv(e.Env)
	}
	return out, err
}

// handed derives the standing inventory from what a resource states.
func (d *Daemon) handed(e orchestrator.EnsureRun) (*ledger.Handed, error) {
	outputs := map[string]inventory.Output{}
	if len(e.Inventory.Tree) > 0 {
		outputs[inventory.OutputTree] = inventory.Output{Value: e.Inventory.Tree}
	} else {
		outputs[inventory.OutputHosts] = inventory.Output{Value: e.Inventory.Hosts}
	}
	inv, err := inventory.Derive(e.Workspace, outputs)
	if err != nil {
		return nil, err
	}
	row, err := d.row(inv)
	if err != nil {
		return nil, err
	}
	hosts := inventory.Effective(inv)
	var m orchestrator.Mistakes
	for _, text := range inventory.Ungranted(hosts, e.Spec.SSHIdentities) {
		m.Addf("%s", text)
	}
	if err := m.Err(); err != nil {
		return nil, orchestrator.Errorf(orchestrator.CodeRefused, "%w", err).
			WithHint("in an exocomp_provision that is the attribute ssh_identities")
	}
	return &ledger.Handed{Inventory: row, Places: inventory.Places(hosts)}, nil
}

// row renders an inventory as the ledger keeps it.
func (d *Daemon) row(inv *inventory.Inventory) (orchestrator.Inventory, error) {
	content, err := inventory.Render(inv)
	if err != nil {
		return orchestrator.Inventory{}, err
	}
	return orchestrator.Inventory{
		Workspace: inv.Workspace,
		Digest:    inventory.Digest(content),
		Content:   content,
		Path:      d.publisher.InventoryPath(inv.Workspace),
		Hosts:     inv.HostNames(),
		Captured:  inv.Captured,
	}, nil
}

// caller returns the running job within which a call was made, nil for none.
func (d *Daemon) caller(ctx context.Context, attempt orchestrator.Secret) (*orchestrator.Job, error) {
	if attempt.IsZero() {
		return nil, nil
	}
	running, err := d.ledger.RunningJobs(ctx)
	if err != nil {
		return nil, err
	}
	for _, j := range running {
		if subtle.ConstantTimeCompare([]byte(j.Attempt.Token.Reveal()), []byte(attempt.Reveal())) == 1 {
			return &j, nil
		}
	}
	return nil, nil
}

// refuseOwnWorkspace refuses a chain over the very workspace whose apply asks for
// it: it would wait for the lock of a state that its caller holds.
func (d *Daemon) refuseOwnWorkspace(ctx context.Context, e orchestrator.EnsureRun, caller *orchestrator.Job) error {
	if e.Inventory != nil {
		return nil
	}
	w, err := d.ledger.Workspace(ctx, e.Workspace)
	if errors.Is(err, orchestrator.ErrNotFound) {
		return nil // the ledger refuses it with its own hint
	}
	if err != nil {
		return err
	}
	own := caller != nil && caller.Workspace == e.Workspace
	if here, err := os.Stat(e.Dir); e.Dir != "" && err == nil {
		there, err := os.Stat(w.Dir)
		own = own || err == nil && os.SameFile(here, there)
	}
	if !own {
		return nil
	}
	return orchestrator.Errorf(orchestrator.CodeRefused, "workspace %s is the configuration that is being applied: a chain over it would wait for itself", e.Workspace).
		WithHint("hand the hosts of this configuration over: set the attribute inventory, and another workspace name")
}

// deferred answers a caller who must not wait.
func (d *Daemon) deferred(out orchestrator.Ensured, caller orchestrator.Job, send func(orchestrator.Ensured) error) error {
	if out.Waiting {
		return orchestrator.Errorf(orchestrator.CodeConflict,
			"run %s of workspace %s does something else and has not ended, and job %s cannot wait for it", out.Run.ID, out.Run.Workspace, caller.ID).
			WithHint("apply again when it has: exocomp provision status %s", out.Run.ID)
	}
	out.Deferred = true
	return send(out)
}

func (d *Daemon) ensure(ctx context.Context, e ledger.Ensure) (out orchestrator.Ensured, err error) {
	err = d.engine.CommitInventory(ctx, e.Workspace, func() error {
		out, err = d.ledger.EnsureRun(ctx, e)
		return err
	})
	return out, err
}

// followRun tells of a run now and whenever one of its steps has moved, until it
// is final.
func (d *Daemon) followRun(ctx context.Context, run orchestrator.Run, tell func(orchestrator.Run) error) (orchestrator.Run, error) {
	told := ""
	for {
		changed := d.ledger.Changed()
		run, err := d.ledger.Run(ctx, run.ID)
		if run, err = settled(ctx, d, run, err); err != nil {
			return run, err
		}
		if now := standing(run); now != told {
			if err := tell(run); err != nil {
				return run, err
			}
			told = now
		}
		if run.State.Final() {
			return run, nil
		}
		select {
		case <-ctx.Done():
			return run, context.Cause(ctx)
		case <-changed:
		}
	}
}

// standing says where a run's steps stand.
func standing(run orchestrator.Run) string {
	text := string(run.State)
	for _, s := range run.Steps {
		text += fmt.Sprintf(" %s/%d", s.State, s.Attempts)
	}
	return text
}

// EndProvision implements [rpc.Provisions].
func (d *Daemon) EndProvision(ctx context.Context, e orchestrator.EndProvision, send func(orchestrator.ProvisionEnd) error) error {
	e.By = rpc.PeerFrom(ctx)
	end, err := d.prepareEnd(e)
	if err != nil {
		return err
	}
	caller, err := d.caller(ctx, e.Attempt)
	if err != nil {
		return err
	}
	if caller != nil {
		defer d.engine.Lend()()
	}
	for {
		var out orchestrator.ProvisionEnd
		err := d.engine.CommitInventory(ctx, e.Workspace, func() (err error) {
			out, err = d.ledger.EndProvision(ctx, end)
			return err
		})
		if err != nil {
			return err
		}
		end.Again = false
		if err := send(out); err != nil || out.Ended {
			return err
		}
		if err := d.followEnd(ctx, out); err != nil {
			return err
		}
	}
}

func (d *Daemon) prepareEnd(e orchestrator.EndProvision) (ledger.End, error) {
	out := ledger.End{EndProvision: e, Again: true}
	if err := e.Validate(); err != nil {
		return out, err
	}
	if e.Leave != nil {
		spec := orchestrator.RunSpec{
			Playbook: e.Leave.Playbook, Vars: e.Leave.Vars, SSHIdentities: e.Leave.SSHIdentities, SSHWait: orchestrator.DefaultSSHWait,
		}
		if err := d.checkSpec(orchestrator.RunProvision, &spec); err != nil {
			return out, err
		}
	}
	empty, err := inventory.Derive(e.Workspace, map[string]inventory.Output{inventory.OutputHosts: {Value: json.RawMessage(`{}`)}})
	if err != nil {
		return out, err
	}
	out.Empty, err = d.row(empty)
	return out, err
}

// followEnd waits for what an end waits for.
func (d *Daemon) followEnd(ctx context.Context, out orchestrator.ProvisionEnd) error {
	if out.Run != "" {
		_, err := d.followRun(ctx, orchestrator.Run{ID: out.Run}, func(orchestrator.Run) error { return nil })
		return err
	}
	for {
		changed := d.ledger.Changed()
		j, err := d.ledger.Job(ctx, out.Job)
		if err != nil || j.State.Final() {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

func (d *Daemon) sealEnv(env map[string]orchestrator.Secret) ([]byte, error) {
	plain := make(map[string]string, len(env))
	for name, value := range env {
		plain[name] = value.Reveal()
	}
	doc, err := json.Marshal(plain)
	if err != nil {
		return nil, err
	}
	return d.identity.Seal(doc)
}

// provisionEnv opens the environment that the resource which has a workspace
// gives its playbooks.
func (d *Daemon) provisionEnv(ctx context.Context, workspace string) (map[string]orchestrator.Secret, error) {
	sealed, err := d.ledger.SealedEnv(ctx, workspace)
	if errors.Is(err, orchestrator.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	doc, err := d.identity.Open(sealed)
	if err != nil {
		return nil, err
	}
	var plain map[string]string
	if err := json.Unmarshal(doc, &plain); err != nil {
		return nil, orchestrator.Errorf(orchestrator.CodeInternal, "the sealed environment of workspace %s is no JSON object of strings", workspace)
	}
	env := make(map[string]orchestrator.Secret, len(plain))
	for name, value := range plain {
		env[name] = orchestrator.NewSecret(value)
	}
	return env, nil
}

// followers counts the clients that follow a resource's run, by the owner's
// fingerprint: while one does, the resource is alive.
type followers struct {
	mu    sync.Mutex
	count map[string]int
}

func (f *followers) follow(owner string) (end func()) {
	f.add(owner, 1)
	return func() { f.add(owner, -1) }
}

func (f *followers) add(owner string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count == nil {
		f.count = map[string]int{}
	}
	if f.count[owner] += n; f.count[owner] == 0 {
		delete(f.count, owner)
	}
}

func (f *followers) follows(owner string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count[owner] > 0
}
