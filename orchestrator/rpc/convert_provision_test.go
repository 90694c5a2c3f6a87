package rpc

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/exocomp/exocomp/orchestrator"
)

// The calls of a resource carry secrets, which no other conversion does.
func TestARequestOfAResourceArrivesWhole(t *testing.T) {
	same := cmp.Comparer(func(a, b orchestrator.Secret) bool { return a.Reveal() == b.Reveal() })
	ensure := orchestrator.EnsureRun{
		Workspace: "edge",
		Owner:     orchestrator.NewSecret("owner"),
		Claim:     true,
		Inventory: &orchestrator.HandedInventory{Hosts: json.RawMessage(`{"web1":{}}`)},
		Spec:      orchestrator.RunSpec{Vars: json.RawMessage(`{"a":1}`), Revision: "r"},
		Env:       map[string]orchestrator.Secret{"DB_PASSWORD": orchestrator.NewSecret("s")},
		Attempt:   orchestrator.NewSecret("attempt"),
		Dir:       "/srv/infra",
	}
	if diff := cmp.Diff(ensure, ensureRunFromWire(travel(t, ensureRunToWire(ensure))), same); diff != "" {
		t.Errorf("lost on the way (-want +got):\n%s", diff)
	}
	ensure.Inventory = &orchestrator.HandedInventory{Tree: json.RawMessage(`{"all":{}}`)}
	if got := ensureRunFromWire(travel(t, ensureRunToWire(ensure))); string(got.Inventory.Tree) != `{"all":{}}` || got.Inventory.Hosts != nil {
		t.Errorf("the tree arrived as %+v", got.Inventory)
	}
	ensure.Inventory = nil
	if got := ensureRunFromWire(travel(t, ensureRunToWire(ensure))); got.Inventory != nil {
		t.Errorf("no inventory arrived as %+v", got.Inventory)
	}
	end := orchestrator.EndProvision{
		Workspace: "edge",
		Owner:     orchestrator.NewSecret("owner"),
		Run:       "run_1",
		Leave:     &orchestrator.PlaySpec{Vars: json.RawMessage(`{}`), SSHIdentities: []string{"/k"}},
		Attempt:   orchestrator.NewSecret("attempt"),
	}
	if diff := cmp.Diff(end, endProvisionFromWire(travel(t, endProvisionToWire(end))), same); diff != "" {
		t.Errorf("lost on the way (-want +got):\n%s", diff)
	}
	t.Run("Ensured", roundTrip(ensuredToWire, ensuredFromWire))
	t.Run("ProvisionEnd", roundTrip(provisionEndToWire, provisionEndFromWire))
}

// travel sends a message through its bytes.
func travel[M proto.Message](t *testing.T, m M) M {
	t.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	got := m.ProtoReflect().New().Interface().(M)
	if err := proto.Unmarshal(data, got); err != nil {
		t.Fatal(err)
	}
	return got
}
