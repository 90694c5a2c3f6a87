package script

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/inventory"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/exocomp/exocomp/orchestrator/rpc/rpctest"
)

// TestMain is the executable where a link to the test is called as one.
func TestMain(m *testing.M) {
	if name := filepath.Base(os.Args[0]); strings.HasPrefix(name, orchestrator.InventoryPrefix) || name == "exocomp-inventory" {
		os.Exit(Run(context.Background(), os.Args, os.Stdout, os.Stderr, rpctest.Version))
	}
	os.Exit(m.Run())
}

// link makes a symbolic link to the executable in a directory of the test's own.
func link(t *testing.T, dir, name string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// view is the daemon's answer for the inventory of a workspace that derives from
// a tree, and the file that it publishes.
func view(t *testing.T, workspace, tree string) (v rpc.InventoryView, file []byte) {
	t.Helper()
	inv, err := inventory.Derive(workspace, map[string]inventory.Output{inventory.OutputTree: {Value: []byte(tree)}})
	if err != nil {
		t.Fatal(err)
	}
	file, err = inventory.Render(inv)
	if err != nil {
		t.Fatal(err)
	}
	return rpc.InventoryView{
		Inventory: orchestrator.Inventory{
			Workspace: workspace, Digest: inventory.Digest(file), Content: file, Hosts: inv.HostNames(), Path: "/data/" + workspace + ".json",
		},
		Published: rpc.PublishedAgrees,
	}, file
}
