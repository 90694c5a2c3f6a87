package engine

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// shelf is a Ledger of one workspace, edge.
type shelf struct {
	Ledger
	row      *orchestrator.Inventory // nil: never captured
	unhanded bool                    // the daemon applies the workspace
}

func (s *shelf) Workspace(_ context.Context, name string) (orchestrator.Workspace, error) {
	if name != "edge" {
		return orchestrator.Workspace{}, orchestrator.Errorf(orchestrator.CodeNotFound, "there is no workspace %s", name)
	}
	w := orchestrator.Workspace{Name: name}
	if s.unhanded {
		w.Dir = "/srv/edge"
	}
	return w, nil
}

func (s *shelf) Inventory(context.Context, string) (orchestrator.Inventory, error) {
	if s.row == nil {
		return orchestrator.Inventory{}, orchestrator.Errorf(orchestrator.CodeNotFound, "tf:edge was never captured").WithHint("apply it")
	}
	return *s.row, nil
}

func TestAStandingInventoryFailsClosed(t *testing.T) {
	named := &orchestrator.Inventory{Workspace: "edge", Hosts: []string{"web1"}}
	lost := orchestrator.Errorf(orchestrator.CodeRefused, "the inventory tf:edge has lost its file")
	for name, c := range map[string]struct {
		ask   string
		shelf shelf
		file  error // what is wrong with the published file
		code  orchestrator.Code
		says  string
	}{
		"by its name":      {ask: "tf:edge", shelf: shelf{row: named}},
		"by the workspace": {ask: "edge", shelf: shelf{row: named}},
		"unregistered":     {ask: "tf:prod", code: orchestrator.CodeNotFound, says: "no workspace prod"},
		"no name":          {ask: "tf:", code: orchestrator.CodeInvalid, says: "empty"},
		"another prefix":   {ask: "fs:edge", code: orchestrator.CodeInvalid, says: `"fs:edge" is not allowed`},
		"never captured":   {ask: "tf:edge", code: orchestrator.CodeRefused, says: "never captured; apply it"},
		"its file is lost": {ask: "tf:edge", shelf: shelf{row: named}, file: lost, code: orchestrator.CodeRefused, says: "lost its file"},
		"hostless":         {ask: "tf:edge", shelf: shelf{row: &orchestrator.Inventory{Workspace: "edge"}, unhanded: true}, code: orchestrator.CodeRefused, says: "names no hosts; name hosts in the output hosts or ansible_inventory, then: exocomp workspace apply edge --wait"},
		"handed, no hosts": {ask: "tf:edge", shelf: shelf{row: &orchestrator.Inventory{Workspace: "edge"}}, code: orchestrator.CodeRefused, says: "then: tofu apply, where the exocomp_provision is"},
	} {
		e := New(Config{Ledger: &c.shelf, Publisher: &press{err: c.file}, Logger: slog.New(slog.DiscardHandler)})
		inv, err := e.StandingInventory(t.Context(), c.ask)
		if orchestrator.CodeOf(err) != c.code || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v (%s), want %s: %q", name, err, orchestrator.CodeOf(err), c.code, c.says)
		}
		if err == nil && inv.Workspace != "edge" {
			t.Errorf("%s: %+v", name, inv)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than one line: %v", name, err)
		}
	}
}

// Row and file belong together only while nobody commits and then publishes.
func TestAStandingInventoryWaitsForAPublication(t *testing.T) {
	e := New(Config{Ledger: &shelf{row: &orchestrator.Inventory{Workspace: "edge", Hosts: []string{"web1"}}}, Publisher: &press{}, Logger: slog.New(slog.DiscardHandler)})
	release, err := e.settle(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("the reader went")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, err := e.StandingInventory(ctx, "tf:edge"); !errors.Is(err, gone) {
		t.Errorf("StandingInventory = %v while a file is being written, want %v", err, gone)
	}
	release()
	if _, err := e.StandingInventory(t.Context(), "tf:edge"); err != nil {
		t.Error(err)
	}
}
