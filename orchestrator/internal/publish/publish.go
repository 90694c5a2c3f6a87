// Package publish writes the copies of the ledger that other programs read: the
// standing inventories and known_hosts. The ledger is the truth; a copy that is
// lost or changed is noticed, and published again from it.
package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
	"github.com/exocomp/exocomp/orchestrator/internal/fault"
	"github.com/exocomp/exocomp/orchestrator/internal/hostkeys"
)

// Publisher writes below a data directory. One at a time may write.
type Publisher struct{ DataDir string }

// InventoryPath returns where the inventory of a workspace is published.
func (p *Publisher) InventoryPath(workspace string) string {
	return filepath.Join(p.inventoryDir(), workspace+".json")
}

func (p *Publisher) inventoryDir() string { return filepath.Join(p.DataDir, "artifacts", "inventory") }

// KnownHostsPath returns where the pins are published.
func (p *Publisher) KnownHostsPath() string { return filepath.Join(p.DataDir, "known_hosts") }

// maxPublished bounds a published file that is read again: more than any ever
// is. What is no regular file is not even waited for.
const maxPublished = 256 << 20

// Inventory publishes one inventory.
func (p *Publisher) Inventory(_ context.Context, inv orchestrator.Inventory) error {
	if err := durable.Mkdir(p.inventoryDir()); err != nil {
		return err
	}
	return write(p.InventoryPath(inv.Workspace), inv.Content)
}

// Pins publishes known_hosts and keeps the version before it beside it.
func (p *Publisher) Pins(_ context.Context, pins []orchestrator.Pin) error {
	path := p.KnownHostsPath()
	now := hostkeys.KnownHosts(pins)
	before, err := durable.ReadRegular(path, maxPublished)
	switch {
	case err == nil && bytes.Equal(before, now):
		return nil
	case err == nil:
		if err := durable.WriteFile(path+".old", before, durable.PrivateFile); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, durable.ErrNotRegular):
		return fmt.Errorf("publish known_hosts: %w", err)
	}
	return write(path, now)
}

// All publishes everything, after a crash may have cut a publication short, and
// takes back inventories that the ledger does not have any more.
func (p *Publisher) All(ctx context.Context, inventories []orchestrator.Inventory, pins []orchestrator.Pin) error {
	if err := durable.Mkdir(p.inventoryDir()); err != nil {
		return err
	}
	errs := []error{durable.Sweep(p.inventoryDir()), durable.Sweep(p.DataDir), p.Pins(ctx, pins)}
	left, err := os.ReadDir(p.inventoryDir())
	errs = append(errs, err)
	for _, entry := range left {
		workspace, ours := strings.CutSuffix(entry.Name(), ".json")
		if ours && !slices.ContainsFunc(inventories, func(inv orchestrator.Inventory) bool { return inv.Workspace == workspace }) {
			errs = append(errs, p.Remove(workspace))
		}
	}
	for _, inv := range inventories {
		if p.State(inv) != Agrees {
			errs = append(errs, p.Inventory(ctx, inv))
		}
	}
	return errors.Join(errs...)
}

// Remove takes back the inventory of a workspace that was removed.
func (p *Publisher) Remove(workspace string) error {
	return durable.Remove(p.InventoryPath(workspace))
}

// State says how a published inventory compares with the ledger.
type State string

const (
	Agrees  State = "agrees"
	Differs State = "differs"
	Missing State = "missing"
)

// State compares the published copy with the ledger's row. A copy that cannot
// be read differs.
func (p *Publisher) State(inv orchestrator.Inventory) State {
	content, err := durable.ReadRegular(p.InventoryPath(inv.Workspace), maxPublished)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Missing
	case err == nil && bytes.Equal(content, inv.Content):
		return Agrees
	default:
		return Differs
	}
}

// Verify refuses ([orchestrator.CodeRefused]) an inventory whose published copy
// is lost or is not what the ledger has: what other programs saw is not what a
// job would get.
func (p *Publisher) Verify(inv orchestrator.Inventory) error {
	path := p.InventoryPath(inv.Workspace)
	switch p.State(inv) {
	case Agrees:
		return nil
	case Missing:
		return orchestrator.Errorf(orchestrator.CodeRefused, "the inventory %s has lost its file %s", inv.Name(), path).
			WithHint("exocomp workspace refresh %s", inv.Workspace)
	default:
		return orchestrator.Errorf(orchestrator.CodeRefused, "the file %s of the inventory %s differs from the ledger", path, inv.Name()).
			WithHint("exocomp workspace refresh %s", inv.Workspace)
	}
}

func write(path string, content []byte) error {
	fault.Point(fault.BeforePublish, filepath.Base(path))
	if err := durable.WriteFile(path, content, durable.PrivateFile); err != nil {
		return err
	}
	fault.Point(fault.AfterPublish, filepath.Base(path))
	return nil
}
