package supervised

import (
	"testing"

	"github.com/exocomp/exocomp/orchestrator/inventory"
)

// A play means after onboarding what it meant before: where it logged in as
// root, it becomes root.
func TestBecomeFollowsWhoLoggedInBefore(t *testing.T) {
	inv := inventoryOf(t, `{
		"root": {"ansible_host": "10.0.0.1", "ansible_user": "root"},
		"none": {"ansible_host": "10.0.0.2"},
		"debian": {"ansible_host": "10.0.0.3", "ansible_user": "debian"},
		"other": {"ansible_host": "10.0.0.4"}
	}`)
	onboarded := map[string]bool{"root": true, "none": true, "debian": true}
	for byDefault, want := range map[bool]map[string]bool{
		false: {"root": true},
		true:  {"root": true, "none": true},
	} {
		as, err := (&Runner{RootByDefault: byDefault}).AsAutomation(inv, "exocomp", onboarded)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range inventory.Effective(as) {
			if user := h.User; (user == "exocomp") != onboarded[h.Name] {
				t.Errorf("%s logs in as %q", h.Name, user)
			}
			if become := h.Vars["ansible_become"] == true; become != want[h.Name] {
				t.Errorf("default root %v: become of %s is %v, want %v", byDefault, h.Name, become, want[h.Name])
			}
		}
	}
}
