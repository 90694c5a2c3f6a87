package script

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator/inventory/inventorytest"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/exocomp/exocomp/orchestrator/rpc/rpctest"
)

// TestAnsibleSeesThePublishedFile: for every inventory of the table,
// `ansible-inventory --list` prints the same for the executable, which a link
// named tf:<workspace> is, and for the file that the daemon publishes.
func TestAnsibleSeesThePublishedFile(t *testing.T) {
	if n := len(inventorytest.Valid); n < 30 {
		t.Fatalf("only %d inventories", n)
	}
	var names, sources []string
	for name := range inventorytest.Valid {
		names = append(names, name)
	}
	slices.Sort(names)
	dir := t.TempDir()
	svc := rpctest.NewService()
	for i, name := range names {
		// The table's workspace is edge; a daemon has one of that name.
		workspace := fmt.Sprintf("edge%d", i)
		v, file := view(t, workspace, strings.ReplaceAll(inventorytest.Valid[name], `"edge"`, `"`+workspace+`"`))
		if len(v.Inventory.Hosts) == 0 {
			continue // a file like others, and an executable that fails
		}
		svc.Inventories[workspace] = v
		path := filepath.Join(dir, workspace+".json")
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		sources = append(sources, path, link(t, dir, "tf:"+workspace))
	}
	if len(sources) < 2*30 {
		t.Fatalf("only %d sources", len(sources))
	}
	daemon := rpctest.Serve(t, svc)
	inventorytest.List(t, sources, rpc.SocketEnv+"="+daemon.Socket)
	for pair := range slices.Chunk(sources, 2) {
		file, err := os.ReadFile(pair[0] + ".out")
		if err != nil {
			t.Fatal(err)
		}
		executable, err := os.ReadFile(pair[1] + ".out")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(file, executable) || !bytes.Contains(file, []byte("hostvars")) {
			t.Errorf("%s: Ansible sees\n%s\nof the executable, of the file\n%s", filepath.Base(pair[1]), executable, file)
		}
	}
}
