package supervised

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/inventory"
)

// pinList answers with its pins and counts how often it is asked.
type pinList struct {
	pins  []orchestrator.Pin
	reads int
}

func (l *pinList) Pins(context.Context, orchestrator.PinFilter) ([]orchestrator.Pin, error) {
	l.reads++
	return l.pins, nil
}

// inventoryOf returns the inventory of `hosts`, as JSON.
func inventoryOf(t *testing.T, hosts string) *inventory.Inventory {
	t.Helper()
	inv, err := inventory.Derive("edge", map[string]inventory.Output{"hosts": {Value: json.RawMessage(hosts)}})
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

const someKey = "AAAAC3NzaC1lZDI1NTE5AAAAIGPKSUTyz1HwHReFVvD5obVsALAgJRNarH4TRpNePnAS"

func pinAt(host string, port int) orchestrator.Pin {
	return orchestrator.Pin{Host: host, Port: port, KeyType: "ssh-ed25519", Key: someKey}
}

// Pins stand in lower case, and ssh asks in lower case: an address is as good
// in capitals.
func TestKnownHostsHoldTheInventorysHostsInAnyCase(t *testing.T) {
	pins := &pinList{pins: []orchestrator.Pin{
		pinAt("web1.example.org", 22), pinAt("web1.example.org", 2222), pinAt("fd00::a", 22), pinAt("other.example.org", 22),
	}}
	inv := inventoryOf(t, `{
		"web1": {"ansible_host": "WEB1.Example.org"},
		"same": {"ansible_host": "web1.EXAMPLE.org"},
		"port": {"ansible_host": "Web1.example.org", "ansible_port": 2222},
		"six": {"ansible_host": "FD00::A"}
	}`)
	known, err := (&Runner{Pins: pins}).knownHosts(t.Context(), inv)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(known), "\n"); n != 3 {
		t.Errorf("%d lines, want the three places of the inventory:\n%s", n, known)
	}
	path := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(path, known, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"WEB1.Example.org", "[Web1.example.org]:2222", "FD00::A"} {
		if out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-F", name, "-f", path).CombinedOutput(); err != nil {
			t.Errorf("ssh does not find %s: %v %s\n%s", name, err, out, known)
		}
	}
}

func TestKnownHostsOfAFleetAreOneRead(t *testing.T) {
	const fleet = 1000
	pins := &pinList{}
	hosts := map[string]any{}
	for i := range fleet {
		address := fmt.Sprintf("10.0.%d.%d", i/250, i%250+1)
		pins.pins = append(pins.pins, pinAt(address, 22))
		hosts[fmt.Sprintf("web%d", i)] = map[string]string{"ansible_host": address}
	}
	doc, err := json.Marshal(hosts)
	if err != nil {
		t.Fatal(err)
	}
	known, err := (&Runner{Pins: pins}).knownHosts(t.Context(), inventoryOf(t, string(doc)))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(known), "\n"); n != fleet || pins.reads != 1 {
		t.Errorf("%d lines by %d reads, want %d by one", n, pins.reads, fleet)
	}
}
