package engine

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// books is a Ledger of one inventory and no pins. Like a real one it reads
// nothing once its context has ended.
type books struct {
	Ledger
	finished func() // called where FinishJob has committed
}

func (b *books) FinishJob(context.Context, orchestrator.JobID, orchestrator.Secret, orchestrator.Outcome) (orchestrator.Job, error) {
	if b.finished != nil {
		b.finished()
	}
	return orchestrator.Job{Workspace: "edge"}, nil
}

func (b *books) Inventory(ctx context.Context, workspace string) (orchestrator.Inventory, error) {
	return orchestrator.Inventory{Workspace: workspace}, ctx.Err()
}

func (b *books) Inventories(ctx context.Context) ([]orchestrator.Inventory, error) {
	return []orchestrator.Inventory{{Workspace: "edge"}}, ctx.Err()
}

func (b *books) Pins(ctx context.Context, _ orchestrator.PinFilter) ([]orchestrator.Pin, error) {
	return nil, ctx.Err()
}

// press is a Publisher that notes what it publishes.
type press struct {
	published []string
	hang      chan struct{} // where set, an inventory is not published before it is closed
	err       error
}

func (p *press) note(what string) error {
	if p.err == nil {
		p.published = append(p.published, what)
	}
	return p.err
}

func (p *press) Inventory(context.Context, orchestrator.Inventory) error {
	if p.hang != nil {
		<-p.hang
	}
	return p.note("inventory")
}

func (p *press) Pins(context.Context, []orchestrator.Pin) error { return p.note("pins") }
func (p *press) Verify(orchestrator.Inventory) error            { return p.err }

func (p *press) Remove(workspace string) error { return p.note("remove " + workspace) }
func (p *press) All(context.Context, []orchestrator.Inventory, []orchestrator.Pin) error {
	return p.note("all")
}

func newEngine(b *books, p *press) *Engine {
	return New(Config{Ledger: b, Publisher: p, Logger: slog.New(slog.DiscardHandler)})
}

var capture = orchestrator.Outcome{Inventory: &orchestrator.Inventory{}, Retire: []orchestrator.Pin{{}}}

// The ledger has committed: whether anybody still waits makes no difference.
func TestWhatIsCommittedIsPublishedAlsoForACancelledCall(t *testing.T) {
	for name, call := range map[string]func(context.Context, *Engine) error{
		"FinishJob": func(ctx context.Context, e *Engine) error {
			_, err := e.FinishJob(ctx, "job_1", orchestrator.Secret{}, capture)
			return err
		},
		"Commit": func(ctx context.Context, e *Engine) error {
			return e.Commit(ctx, func() error { e.Ledger.(*books).finished(); return nil })
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		p := &press{}
		e := newEngine(&books{finished: cancel}, p)
		e.stale = false
		if err := call(ctx, e); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !slices.Contains(p.published, "pins") || e.stale {
			t.Errorf("%s published %q, stale %v", name, p.published, e.stale)
		}
	}
}

func TestAHangingDiskMakesNoReaderHang(t *testing.T) {
	p := &press{hang: make(chan struct{})}
	committed := make(chan struct{})
	e := newEngine(&books{finished: func() { close(committed) }}, p)
	done := make(chan error)
	go func() {
		_, err := e.FinishJob(t.Context(), "job_1", orchestrator.Secret{}, capture)
		done <- err
	}()
	<-committed
	gone := errors.New("the reader went")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if err := e.Settled(ctx); !errors.Is(err, gone) {
		t.Errorf("Settled = %v while a file is being written, want %v", err, gone)
	}
	close(p.hang)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := e.Settled(t.Context()); err != nil {
		t.Errorf("Settled after it: %v", err)
	}
}

func TestWhatCouldNotBePublishedIsPublishedLater(t *testing.T) {
	p := &press{err: errors.New("disk full")}
	e := newEngine(&books{}, p)
	if err := e.Withdraw(t.Context(), "edge", func() error { return nil }); err != nil {
		t.Errorf("Withdraw = %v; the ledger has it, the file comes later", err)
	}
	p.err = nil
	for range 2 { // the second time there is nothing to do
		if err := e.publishStale(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(p.published, []string{"all"}) {
		t.Errorf("published %q, want everything once", p.published)
	}
}
