package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/inventory"
	"github.com/exocomp/exocomp/orchestrator/rpc/rpctest"
)

// fakeDaemon serves the real contract and keeps its rules about resources, but
// its runs do no work: they end as the test says.
type fakeDaemon struct {
	*rpctest.Service
	server *rpctest.Daemon

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change
	runs    []*fakeRun
	owners  map[string]*fakeOwner // by workspace
	asked   []orchestrator.EnsureRun
	ends    []orchestrator.EndProvision
	gone    int // requests whose caller hung up

	failAt   orchestrator.StepKind // the next runs fail there
	held     bool                  // runs stay running
	deferred bool                  // every caller is deferred
	waits    bool                  // the first run stands in everybody's way
	leaves   error                 // how leave plays end
	mute     bool                  // a playbook is never taken
}

type fakeRun struct {
	orchestrator.Run
	hosts string // what was handed over
	times int    // started or resumed
}

type fakeOwner struct {
	token     string
	succeeded bool
}

func newFakeDaemon(t testing.TB) *fakeDaemon {
	t.Helper()
	d := &fakeDaemon{Service: rpctest.NewService(), changed: make(chan struct{}), owners: map[string]*fakeOwner{}}
	d.FleetKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFleet exocomp"
	d.Service.Ensure, d.Service.End = d.ensure, d.end
	d.server = rpctest.Serve(t, d)
	return d
}

// set changes how the daemon behaves, under its lock.
func (d *fakeDaemon) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
	d.wake()
}

func (d *fakeDaemon) wake() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// times returns, run by run, how often each was started or resumed.
func (d *fakeDaemon) times() []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	var n []int
	for _, r := range d.runs {
		n = append(n, r.times)
	}
	return n
}

// lastAsked returns the newest request of a resource.
func (d *fakeDaemon) lastAsked() orchestrator.EnsureRun {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.asked) == 0 {
		return orchestrator.EnsureRun{}
	}
	return d.asked[len(d.asked)-1]
}

// until waits for a condition that is looked at under the lock.
func (d *fakeDaemon) until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for {
		d.mu.Lock()
		met, changed := condition(), d.changed
		d.mu.Unlock()
		if met {
			return
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("never: %s", what)
		}
	}
}

// HasSnapshot implements [rpc.Snapshots].
func (d *fakeDaemon) HasSnapshot(ctx context.Context, digest string) (bool, error) {
	d.mu.Lock()
	mute := d.mute
	d.mu.Unlock()
	if mute {
		<-ctx.Done()
		return false, ctx.Err()
	}
	return d.Service.HasSnapshot(ctx, digest)
}

// GetRun implements [rpc.Runs].
func (d *fakeDaemon) GetRun(_ context.Context, ref string) (orchestrator.Run, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := len(d.runs) - 1; i >= 0; i-- {
		if r := d.runs[i]; string(r.ID) == ref || r.Workspace == ref {
			return r.Run, nil
		}
	}
	return orchestrator.Run{}, orchestrator.Errorf(orchestrator.CodeNotFound, "no run %q", ref)
}

func (d *fakeDaemon) ensure(ctx context.Context, e orchestrator.EnsureRun, send func(orchestrator.Ensured) error) error {
	d.mu.Lock()
	d.asked = append(d.asked, e)
	if d.waits {
		run := d.runs[0].Run
		run.State = orchestrator.RunRunning
		d.wake()
		d.mu.Unlock()
		if err := send(orchestrator.Ensured{Run: run, Waiting: true}); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}
	r, err := d.take(e)
	deferred := d.deferred
	d.wake()
	d.mu.Unlock()
	if err != nil {
		return err
	}
	if deferred {
		return send(orchestrator.Ensured{Run: r.Run, Deferred: true})
	}
	for {
		d.mu.Lock()
		now, changed := r.Run, d.changed
		if !d.held && !now.State.Final() {
			d.finish(r)
			now = r.Run
		}
		d.mu.Unlock()
		if err := send(orchestrator.Ensured{Run: now}); err != nil || now.State.Final() {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			d.set(func() { d.gone++ })
			return ctx.Err()
		}
	}
}

// take finds or makes the run of a request, as the contract says.
func (d *fakeDaemon) take(e orchestrator.EnsureRun) (*fakeRun, error) {
	hosts := ""
	if e.Inventory != nil {
		hosts = string(e.Inventory.Tree) + string(e.Inventory.Hosts)
	}
	var newest *fakeRun
	for _, r := range d.runs {
		if r.Workspace == e.Workspace {
			newest = r
		}
	}
	own := d.owners[e.Workspace]
	if own == nil || e.Claim || (own.token != e.Owner.Reveal() && !own.succeeded && newest != nil && newest.hosts == hosts) {
		own = &fakeOwner{token: e.Owner.Reveal()}
		d.owners[e.Workspace] = own
	}
	if own.token != e.Owner.Reveal() {
		return nil, orchestrator.Errorf(orchestrator.CodeConflict, "workspace %s is another resource's", e.Workspace).
			WithHint("tofu import exocomp_provision.NAME %s", e.Workspace)
	}
	switch {
	case newest != nil && !newest.State.Final():
	case newest != nil && newest.State == orchestrator.RunFailed && newest.hosts == hosts:
		newest.Spec, newest.State = e.Spec, orchestrator.RunRunning
		newest.times++
	case newest != nil && newest.State == orchestrator.RunSucceeded && (newest.hosts == hosts || e.Claim) && newest.Spec.SameWork(e.Spec, e.Claim):
		own.succeeded = true
	default:
		newest = d.add(e.Workspace, e.Spec)
		newest.hosts = hosts
	}
	return newest, nil
}

// add starts a run, a person's one or a resource's.
func (d *fakeDaemon) add(workspace string, spec orchestrator.RunSpec) *fakeRun {
	r := &fakeRun{times: 1, Run: orchestrator.Run{
		ID: orchestrator.RunID(fmt.Sprintf("run_%026d", len(d.runs)+1)), Kind: orchestrator.RunProvision,
		Workspace: workspace, State: orchestrator.RunRunning, Spec: spec,
	}}
	for i, kind := range r.Kind.Steps() {
		r.Steps = append(r.Steps, orchestrator.Step{Seq: i + 1, Kind: kind, State: orchestrator.StepBlocked, Origin: orchestrator.OriginRun})
	}
	d.runs = append(d.runs, r)
	return r
}

// finish ends a run as the test says.
func (d *fakeDaemon) finish(r *fakeRun) {
	steps := make([]orchestrator.Step, len(r.Steps))
	copy(steps, r.Steps)
	r.Steps, r.State = steps, orchestrator.RunSucceeded
	hosts := reported(r.Workspace, r.hosts)
	for i := range steps {
		s := &steps[i]
		s.State, s.Failure = orchestrator.StepSucceeded, nil
		s.Report = &orchestrator.Report{Summary: "done", Hosts: hosts}
		if s.Kind == d.failAt {
			s.State, r.State = orchestrator.StepFailed, orchestrator.RunFailed
			s.Job = "job_00000000000000000000000001"
			s.Failure = &orchestrator.Failure{Code: orchestrator.CodeFailed, Message: "1 of 2 hosts failed", Hint: "correct site.yml"}
			s.Report = &orchestrator.Report{
				Task:      "install nginx",
				Hosts:     []orchestrator.HostReport{{Name: "web1", State: orchestrator.HostFailed, Message: "no package nginx"}},
				LastLines: []string{"TASK [install nginx]", "fatal: [web1]: FAILED!"},
			}
			return
		}
	}
	if own := d.owners[r.Workspace]; own != nil {
		own.succeeded = true
	}
}

// reported is what the steps say of hosts that were handed over.
func reported(workspace, doc string) []orchestrator.HostReport {
	for _, output := range []string{"hosts", "ansible_inventory"} {
		inv, err := inventory.Derive(workspace, map[string]inventory.Output{output: {Value: json.RawMessage(doc)}})
		if err != nil {
			continue
		}
		var out []orchestrator.HostReport
		for _, h := range inventory.Effective(inv) {
			out = append(out, orchestrator.HostReport{Name: h.Name, Address: fmt.Sprintf("%s:%d", h.Address, h.Port), State: orchestrator.HostOK})
		}
		return out
	}
	return nil
}

func (d *fakeDaemon) end(_ context.Context, e orchestrator.EndProvision, send func(orchestrator.ProvisionEnd) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ends = append(d.ends, e)
	defer d.wake()
	own := d.owners[e.Workspace]
	if own == nil || own.token != e.Owner.Reveal() {
		return send(orchestrator.ProvisionEnd{Stranger: true})
	}
	if !own.succeeded {
		return send(orchestrator.ProvisionEnd{Ended: true})
	}
	if e.Leave != nil {
		if err := send(orchestrator.ProvisionEnd{Job: "job_00000000000000000000000002"}); err != nil {
			return err
		}
		if d.leaves != nil {
			return d.leaves
		}
	}
	delete(d.owners, e.Workspace)
	return send(orchestrator.ProvisionEnd{Ended: true})
}

// digits is the name of a run's number in its id, for expectations.
func digits(n int) string { return fmt.Sprintf("run_%026d", n) }

// lines joins the lines of a configuration.
func lines(l ...string) string { return strings.Join(l, "\n") + "\n" }
