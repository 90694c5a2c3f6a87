package ledger

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

// resource asks as an exocomp_provision does.
type resource struct {
	t     *testing.T
	l     *Ledger
	owner orchestrator.Secret
	alive map[string]bool // owners whose clients follow a run

	workspace string
}

func newResource(t *testing.T, l *Ledger, name string) *resource {
	return &resource{t: t, l: l, owner: orchestrator.NewSecret(strings.Repeat(name, 16)), alive: map[string]bool{}, workspace: "edge"}
}

// handing is a request that hands over hosts, `name@address`, with a playbook.
func (r *resource) handing(playbook string, hosts ...string) Ensure {
	h := Handed{}
	for _, x := range hosts {
		name, address, _ := strings.Cut(x, "@")
		h.Inventory.Hosts = append(h.Inventory.Hosts, name)
		h.Places = append(h.Places, orchestrator.Place{Name: name, Address: address, Port: 22})
	}
	h.Inventory.Content = []byte(fmt.Sprint(hosts))
	h.Inventory.Digest = "sha256:" + fmt.Sprintf("%x", h.Inventory.Content)
	h.Inventory.Path = "/data/artifacts/inventory/edge.json"
	e := r.applying(playbook)
	e.Inventory, e.Handed = &orchestrator.HandedInventory{Hosts: json.RawMessage(`{}`)}, &h
	return e
}

// applying is a request for the registered workspace.
func (r *resource) applying(playbook string) Ensure {
	return Ensure{
		EnsureRun: orchestrator.EnsureRun{Workspace: r.workspace, Owner: r.owner, Spec: spec(playbook), By: tester},
		Alive:     func(owner string) bool { return r.alive[owner] },
	}
}

func (r *resource) ensure(e Ensure) orchestrator.Ensured {
	r.t.Helper()
	return must(r.l.EnsureRun(r.t.Context(), e))(r.t)
}

func (r *resource) refused(e Ensure, code orchestrator.Code, parts ...string) {
	r.t.Helper()
	_, err := r.l.EnsureRun(r.t.Context(), e)
	wantCode(r.t, err, code, parts...)
}

func (r *resource) end(leave *orchestrator.PlaySpec, again bool) (orchestrator.ProvisionEnd, error) {
	return r.l.EndProvision(r.t.Context(), End{
		EndProvision: orchestrator.EndProvision{Workspace: r.workspace, Owner: r.owner, Leave: leave, By: tester},
		Empty:        orchestrator.Inventory{Digest: "sha256:empty", Content: []byte("{}"), Path: "/data/artifacts/inventory/edge.json"},
		Again:        again,
	})
}

// through finishes the steps that are left of the run at hand.
func (r *resource) through() {
	r.t.Helper()
	for {
		j := must(r.l.ClaimJob(r.t.Context()))(r.t)
		if j == nil {
			return
		}
		finish(r.t, r.l, *j, orchestrator.Outcome{})
	}
}

// failAt finishes steps until the one of that number, which fails.
func (r *resource) failAt(step int) {
	r.t.Helper()
	for {
		j := claim(r.t, r.l)
		if j.Step == step {
			finish(r.t, r.l, j, failure())
			return
		}
		finish(r.t, r.l, j, orchestrator.Outcome{})
	}
}

func TestAHandedOverRunBeginsWithStep2(t *testing.T) {
	l := openTest(t)
	r := newResource(t, l, "a")
	got := r.ensure(r.handing("a", "web1@192.0.2.1"))
	wantSteps(t, l, got.Run.ID, "running: succeeded ready blocked blocked")
	if got.Run.Steps[0].Origin != orchestrator.OriginCaller || !got.Run.Resource {
		t.Errorf("step 1 is of %s, resource %v", got.Run.Steps[0].Origin, got.Run.Resource)
	}
	inv := must(l.Inventory(t.Context(), "edge"))(t)
	if inv.Digest != got.Run.Inventory || !slices.Equal(inv.Hosts, []string{"web1"}) || inv.Job != "" {
		t.Errorf("inventory %+v, the run requires %s", inv, got.Run.Inventory)
	}
	r.through()
	wantSteps(t, l, got.Run.ID, "succeeded: succeeded succeeded succeeded succeeded")
	if again := r.ensure(r.handing("a", "web1@192.0.2.1")); again.Run.ID != got.Run.ID || !again.Run.State.Final() {
		t.Errorf("asked again: %+v, want the run that did it", again)
	}
	if other := r.ensure(r.handing("b", "web1@192.0.2.1")); other.Run.ID == got.Run.ID {
		t.Error("another playbook was answered with the run of the first")
	}
}

func TestAnUnfinishedRunIsTheAnswerOnlyIfItDoesTheSame(t *testing.T) {
	l := openTest(t)
	r := newResource(t, l, "a")
	first := r.ensure(r.handing("a", "web1@192.0.2.1"))
	if same := r.ensure(r.handing("a", "web1@192.0.2.1")); same.Run.ID != first.Run.ID || same.Waiting {
		t.Errorf("the same: %+v", same)
	}
	for name, e := range map[string]Ensure{
		"playbook":  r.handing("b", "web1@192.0.2.1"),
		"inventory": r.handing("a", "web2@192.0.2.1"),
	} {
		if got := r.ensure(e); got.Run.ID != first.Run.ID || !got.Waiting {
			t.Errorf("another %s: %+v, want to wait for %s", name, got, first.Run.ID)
		}
	}
	if _, err := l.CancelRun(t.Context(), first.Run.ID, false, tester); err != nil {
		t.Fatal(err)
	}
	if next := r.ensure(r.handing("a", "web1@192.0.2.1")); next.Run.ID == first.Run.ID {
		t.Error("a cancelled run is the answer")
	}
}

// OpenTofu taints a create that failed: the next apply deletes and creates with
// another token. That is the same chain, at the step where it stopped.
func TestADeleteAndCreateResumesTheFailedRun(t *testing.T) {
	l := openTest(t)
	r := newResource(t, l, "a")
	first := r.ensure(r.handing("a", "web1@192.0.2.1"))
	r.failAt(4)
	if end := must(r.end(playSpec("c"), true))(t); !end.Ended || end.Job != "" {
		t.Errorf("the end of a resource that never succeeded: %+v, want no leave play", end)
	}
	b := newResource(t, l, "b")
	got := b.ensure(b.handing("b", "web1@192.0.2.1")) // the playbook was corrected
	if got.Run.ID != first.Run.ID {
		t.Fatalf("run %s, want %s resumed", got.Run.ID, first.Run.ID)
	}
	wantSteps(t, l, got.Run.ID, "running: succeeded succeeded succeeded ready")
	b.through()
	run := must(l.Run(t.Context(), first.Run.ID))(t)
	for i, want := range []int{0, 1, 1, 2} {
		if run.Steps[i].Attempts != want {
			t.Errorf("step %d has %d attempts, want %d", i+1, run.Steps[i].Attempts, want)
		}
	}
	if end := must(r.end(nil, true))(t); !end.Stranger {
		t.Errorf("the old token ends the new resource: %+v", end)
	}
}

// The same hosts with other variables are resumed with those; other hosts are
// another chain.
func TestAFailedRunIsResumedForTheSameHostsOnly(t *testing.T) {
	l := openTest(t)
	r := newResource(t, l, "a")
	first := r.ensure(r.handing("a", "web1@192.0.2.1"))
	r.failAt(2)
	e := r.handing("a", "web1@192.0.2.1")
	e.Handed.Inventory.Digest = "sha256:other-variables"
	if got := r.ensure(e); got.Run.ID != first.Run.ID || got.Run.Inventory != "sha256:other-variables" {
		t.Errorf("run %s requires %s, want %s with the new inventory", got.Run.ID, got.Run.Inventory, first.Run.ID)
	}
	r.failAt(2)
	if got := r.ensure(r.handing("a", "web1@192.0.2.9")); got.Run.ID == first.Run.ID {
		t.Error("other hosts resume the run")
	}
}

func TestAReleasedSuccessIsNoAnswer(t *testing.T) {
	l := openTest(t)
	r := newResource(t, l, "a")
	first := r.ensure(r.handing("a", "web1@192.0.2.1"))
	must(r.end(nil, true))(t)
	r.through() // it succeeds before anybody cancels it
	b := newResource(t, l, "b")
	if got := b.ensure(b.handing("a", "web1@192.0.2.1")); got.Run.ID == first.Run.ID {
		t.Error("the machine may be another one, and the run of the deleted resource is the answer")
	}
}

// A tofu that was killed, or whose create timed out, makes the resource anew: what
// its run has come to meanwhile is the answer.
func TestASuccessThatNobodyWasToldOfIsTheAnswer(t *testing.T) {
	l := openTest(t)
	a, b := newResource(t, l, "a"), newResource(t, l, "b")
	first := a.ensure(a.handing("a", "web1@192.0.2.1"))
	a.through()
	b.refused(b.handing("a", "web2@192.0.2.2"), orchestrator.CodeConflict) // other hosts
	if got := b.ensure(b.handing("a", "web1@192.0.2.1")); got.Run.ID != first.Run.ID || !got.Run.State.Final() {
		t.Errorf("run %s is the answer, want the success %s", got.Run.ID, first.Run.ID)
	}
	a.refused(a.handing("a", "web1@192.0.2.1"), orchestrator.CodeConflict)

	// told while it was followed
	c := newResource(t, l, "c")
	c.workspace = "rim"
	c.ensure(c.handing("a", "web3@192.0.2.3"))
	c.through()
	if err := l.AnswerProvision(t.Context(), "rim", c.owner); err != nil {
		t.Fatal(err)
	}
	d := newResource(t, l, "d")
	d.workspace = "rim"
	d.refused(d.handing("a", "web3@192.0.2.3"), orchestrator.CodeConflict)
}

func TestAWorkspaceHasOneResource(t *testing.T) {
	l := openTest(t)
	a, b := newResource(t, l, "a"), newResource(t, l, "b")
	a.ensure(a.handing("a", "web1@192.0.2.1"))
	b.refused(b.handing("a", "web2@192.0.2.2"), orchestrator.CodeConflict, "belongs to another", "tofu import")
	// the same hosts: only where nobody waits for the first
	b.alive[OwnerFingerprint(a.owner)] = true
	b.refused(b.handing("a", "web1@192.0.2.1"), orchestrator.CodeConflict)
	if inv := must(l.Inventory(t.Context(), "edge"))(t); !slices.Equal(inv.Hosts, []string{"web1"}) {
		t.Errorf("the refused one changed the inventory: %v", inv.Hosts)
	}
	a.failAt(3)
	b.alive = map[string]bool{}
	run := b.ensure(b.handing("a", "web1@192.0.2.1")).Run
	wantSteps(t, l, run.ID, "running: succeeded succeeded ready blocked")
	b.through()
	b.ensure(b.handing("a", "web1@192.0.2.1"))
	// after a success of which b was told only an import takes it
	a.refused(a.handing("a", "web1@192.0.2.1"), orchestrator.CodeConflict)
	e := a.handing("a", "web1@192.0.2.1")
	e.Claim, e.Spec.Revision = true, "other triggers"
	if got := a.ensure(e); got.Run.ID != run.ID {
		t.Errorf("an import ran %s, want to record %s", got.Run.ID, run.ID)
	}
	b.refused(b.handing("a", "web1@192.0.2.1"), orchestrator.CodeConflict)
}

func TestARegisteredWorkspaceIsApplied(t *testing.T) {
	l := openTest(t)
	r := newResource(t, l, "a")
	r.refused(r.applying("a"), orchestrator.CodeNotFound, "exocomp workspace add", "inventory")
	addWorkspace(t, l, "edge")
	r.refused(r.handing("a", "web1@192.0.2.1"), orchestrator.CodeConflict, "belongs to its own applies")
	first := r.ensure(r.applying("a"))
	wantSteps(t, l, first.Run.ID, "running: ready blocked blocked blocked")
	r.failAt(1)
	if got := r.ensure(r.applying("b")); got.Run.ID != first.Run.ID {
		t.Errorf("run %s, want %s resumed", got.Run.ID, first.Run.ID)
	}
	r.failAt(1)
	person := submitRun(t, l, "edge") // a person's run is newer: the failed one is history
	r.through()
	if got := r.ensure(r.applying("b")); got.Run.ID == first.Run.ID || got.Run.ID == person.ID {
		t.Errorf("run %s, want a new one", got.Run.ID)
	}
}

func TestAHandedOverWorkspaceIsNotApplied(t *testing.T) {
	l := openTest(t)
	r := newResource(t, l, "a")
	r.ensure(r.handing("a", "web1@192.0.2.1"))
	_, _, err := l.SubmitRun(t.Context(), newRun("edge"))
	wantCode(t, err, orchestrator.CodeRefused, "no root module", "tofu apply")
	_, err = l.SubmitJob(t.Context(), orchestrator.NewJob{Kind: orchestrator.JobWorkspaceApply, Workspace: "edge", By: tester})
	wantCode(t, err, orchestrator.CodeRefused)
	_, err = l.AddSchedule(t.Context(), applySchedule("weekly", "edge"), tester)
	wantCode(t, err, orchestrator.CodeRefused, "no root module", "tofu apply")
	addPlay := playSchedule()
	addPlay.Workspace = "edge"
	must(l.AddSchedule(t.Context(), addPlay, tester))(t)
	r.through()
	_, err = l.AddWorkspace(t.Context(), workspaceNamed("edge"), tester)
	wantCode(t, err, orchestrator.CodeConflict, "handed over", "destroy that resource")
}

// A run that is queued behind another job hands its hosts over in its turn: who
// runs before it sees the inventory that it was given.
func TestHostsAreHandedOverInTurn(t *testing.T) {
	l := openTest(t)
	r := newResource(t, l, "a")
	r.ensure(r.handing("a", "web1@192.0.2.1"))
	r.through()
	job := must(l.SubmitJob(t.Context(), orchestrator.NewJob{Kind: orchestrator.JobHostOnboard, Workspace: "edge", By: tester}))(t)
	got := r.ensure(r.handing("a", "web2@192.0.2.2"))
	wantSteps(t, l, got.Run.ID, "queued: blocked blocked blocked blocked")
	if inv := must(l.Inventory(t.Context(), "edge"))(t); !slices.Equal(inv.Hosts, []string{"web1"}) {
		t.Errorf("inventory %v before the turn", inv.Hosts)
	}
	if j := claim(t, l); j.ID != job.ID {
		t.Fatalf("claimed %s, want %s", j.ID, job.ID)
	} else {
		finish(t, l, j, orchestrator.Outcome{})
	}
	wantSteps(t, l, got.Run.ID, "running: succeeded ready blocked blocked")
	if inv := must(l.Inventory(t.Context(), "edge"))(t); !slices.Equal(inv.Hosts, []string{"web2"}) {
		t.Errorf("inventory %v after the turn", inv.Hosts)
	}
}

func TestTheEndOfAResource(t *testing.T) {
	l := openTest(t)
	r := newResource(t, l, "a")
	r.ensure(r.handing("a", "web1@192.0.2.1"))
	r.through()
	if err := l.ChangePins(t.Context(), adding(pin("192.0.2.1", "A", "edge/web1"))); err != nil {
		t.Fatal(err)
	}
	live := r.ensure(r.handing("b", "web1@192.0.2.1"))
	j := claim(t, l)
	end := must(r.end(playSpec("c"), true))(t)
	if end.Run != live.Run.ID || end.Job != "" || end.Ended {
		t.Fatalf("while a run is live: %+v, want it cancelled first", end)
	}
	finish(t, l, j, orchestrator.Outcome{Failure: &orchestrator.Failure{Code: orchestrator.CodeCancelled, Message: "cancelled"}})

	first := must(r.end(playSpec("c"), true))(t)
	if first.Job == "" || first.Ended {
		t.Fatalf("then: %+v, want the leave play", first)
	}
	if again := must(r.end(playSpec("c"), false))(t); again.Job != first.Job {
		t.Errorf("asked again: %+v, want the same job", again)
	}
	finish(t, l, claim(t, l), failure())
	_, err := r.end(playSpec("c"), false)
	wantCode(t, err, orchestrator.CodeFailed, string(first.Job), "destroy again")
	if inv := must(l.Inventory(t.Context(), "edge"))(t); len(inv.Hosts) != 1 {
		t.Errorf("inventory %v while the leave play has not succeeded", inv.Hosts)
	}
	second := must(r.end(playSpec("c"), true))(t)
	if second.Job == first.Job {
		t.Error("a destroy after a failed leave play does not run it again")
	}
	finish(t, l, claim(t, l), orchestrator.Outcome{})
	if end := must(r.end(playSpec("c"), false))(t); !end.Ended {
		t.Errorf("after the leave play: %+v", end)
	}
	if inv := must(l.Inventory(t.Context(), "edge"))(t); len(inv.Hosts) != 0 || string(inv.Content) != "{}" {
		t.Errorf("inventory %+v after the end", inv)
	}
	if pins := must(l.Pins(t.Context(), orchestrator.PinFilter{}))(t); len(pins) != 0 {
		t.Errorf("pins %v after the end", pins)
	}
	if end := must(r.end(playSpec("c"), true))(t); !end.Stranger {
		t.Errorf("ended twice: %+v", end)
	}
	if _, err := l.AddWorkspace(t.Context(), workspaceNamed("edge"), tester); err != nil {
		t.Errorf("the name is free again: %v", err)
	}
}

func TestAnUnclaimedRunIsCancelledInTime(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	l := openAt(t, t.TempDir()+"/ledger.db", Options{Now: func() time.Time { return now }})
	r := newResource(t, l, "a")
	run := r.ensure(r.handing("a", "web1@192.0.2.1")).Run
	must(r.end(nil, true))(t)
	next := must(l.AbandonRuns(t.Context()))(t)
	if want := now.Add(orchestrator.AbandonAfter); next.Sub(want).Abs() > time.Second {
		t.Errorf("due at %v, want %v", next, want)
	}
	wantSteps(t, l, run.ID, "running: succeeded ready blocked blocked")
	b := newResource(t, l, "b")
	if got := b.ensure(b.handing("a", "web1@192.0.2.1")); got.Run.ID != run.ID {
		t.Fatalf("a create within the time runs %s, want to claim %s", got.Run.ID, run.ID)
	}
	now = now.Add(2 * orchestrator.AbandonAfter)
	must(l.AbandonRuns(t.Context()))(t)
	wantSteps(t, l, run.ID, "running: succeeded ready blocked blocked")
	must(b.end(nil, true))(t)
	now = now.Add(2 * orchestrator.AbandonAfter)
	if next := must(l.AbandonRuns(t.Context()))(t); !next.IsZero() {
		t.Errorf("due again at %v", next)
	}
	wantSteps(t, l, run.ID, "cancelled: succeeded cancelled cancelled cancelled")
}

func TestTheEnvironmentOfAResourceGoesWithIt(t *testing.T) {
	l := openTest(t)
	r := newResource(t, l, "a")
	e := r.handing("a", "web1@192.0.2.1")
	e.Sealed = []byte("one")
	r.ensure(e)
	r.failAt(4)
	e.Sealed = []byte("two")
	r.ensure(e)
	if got := must(l.SealedEnv(t.Context(), "edge"))(t); string(got) != "two" {
		t.Errorf("sealed %q after the resume", got)
	}
	r.through()
	must(r.end(nil, true))(t)
	_, err := l.SealedEnv(t.Context(), "edge")
	wantCode(t, err, orchestrator.CodeNotFound)
}

func playSpec(name string) *orchestrator.PlaySpec {
	return &orchestrator.PlaySpec{Playbook: spec(name).Playbook}
}

// OpenTofu drops the private state of a tainted resource that it replaces: the
// run in its state is what is left to know it by.
func TestATaintedResourceEndsByItsRun(t *testing.T) {
	l := openTest(t)
	r := newResource(t, l, "a")
	byRun := func(run orchestrator.RunID) orchestrator.ProvisionEnd {
		t.Helper()
		e := End{EndProvision: orchestrator.EndProvision{Workspace: "edge", Run: run, By: tester}, Empty: orchestrator.Inventory{Digest: "sha256:empty", Content: []byte("{}"), Path: "/p"}, Again: true}
		return must(l.EndProvision(t.Context(), e))(t)
	}
	first := r.ensure(r.handing("a", "web1@192.0.2.1")).Run
	r.failAt(4)
	if end := byRun(first.ID); !end.Ended || end.Stranger {
		t.Errorf("a create that failed: %+v, want it released", end)
	}
	b := newResource(t, l, "b")
	if got := b.ensure(b.handing("a", "web1@192.0.2.1")).Run; got.ID != first.ID {
		t.Fatalf("run %s, want %s resumed", got.ID, first.ID)
	}
	b.through()
	// its client timed out: nobody was told of the success
	if end := byRun(first.ID); !end.Ended || end.Stranger {
		t.Errorf("a create that timed out: %+v", end)
	}
	c := newResource(t, l, "c")
	if got := c.ensure(c.handing("a", "web1@192.0.2.1")).Run; got.ID != first.ID {
		t.Fatalf("run %s, want %s as the answer", got.ID, first.ID)
	}
	if end := byRun("run_other"); !end.Stranger {
		t.Errorf("another run: %+v, want a stranger", end)
	}
	// healthy, and tainted by hand
	if end := byRun(first.ID); !end.Ended || end.Stranger {
		t.Errorf("a healthy one: %+v, want it ended", end)
	}
	d := newResource(t, l, "d")
	if got := d.ensure(d.handing("a", "web1@192.0.2.1")).Run; got.ID == first.ID {
		t.Error("what was ended is the answer to a new create")
	}
}
