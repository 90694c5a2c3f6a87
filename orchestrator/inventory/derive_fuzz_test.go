package inventory

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/inventory/inventorytest"
)

// FuzzDerive holds that any output is refused with a place, or becomes an
// inventory that reads back as itself and that Ansible has nothing to evaluate in.
func FuzzDerive(f *testing.F) {
	for _, source := range inventorytest.Valid {
		f.Add("ansible_inventory", []byte(source))
	}
	f.Add("hosts", []byte(`{"a":{"ansible_host":"::1"},"b":null}`))
	f.Add("hosts", []byte(`{"a":{"ansible_port":"22","x":[{"__ansible_unsafe":1}]}}`))
	f.Add("x", []byte(`{"{{":"#jinja2: {%"}`))
	f.Add("x", []byte(`"\ud800\u0000{#"`))
	f.Fuzz(func(t *testing.T, output string, data []byte) {
		inv, err := Derive("edge", map[string]Output{output: {Value: json.RawMessage(data)}})
		if err != nil {
			if !errors.Is(err, orchestrator.ErrInvalid) || err.Error() == "" {
				t.Fatalf("error %v", err)
			}
			return
		}
		if len(data) > 1<<16 {
			return
		}
		if got := len(Effective(inv)); got != inv.HostCount() {
			t.Fatalf("%d effective hosts of %d", got, inv.HostCount())
		}
		roundTrip(t, inv)
	})
}
