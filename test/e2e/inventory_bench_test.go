//go:build bench

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestBenchInventory10000Hosts: Ansible reads 10,000 hosts from exocomp-inventory
// in at most 1.5 times what it takes to read them from a JSON file, and the
// executable is faster than a script over `tofu show -json`. Each is measured in
// turn, and the fastest of each counts.
func TestBenchInventory10000Hosts(t *testing.T) {
	const hosts, rounds, limit = 10000, 3, 1.5
	s := newSite(t)
	s.start()
	all := map[string]vars{}
	for i := range hosts {
		all[fmt.Sprintf("web%05d", i)] = vars{
			"ansible_host": fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), "ansible_user": "debian",
			"rack": i % 40, "labels": vars{"zone": fmt.Sprintf("z%d", i%3), "env": "prod"},
		}
	}
	tofu := s.workspace("edge", all)
	s.ok("workspace", "apply", "edge", "--wait")
	dir := s.linked("tf:edge")
	script, err := filepath.Abs("../../inventory-plugin/bench/tofu-show.py")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.data(), "artifacts", "inventory", "edge.json")

	fastest := map[string]time.Duration{}
	measure := func(what, in string, line ...string) {
		t.Helper()
		start := time.Now()
		r := s.stock(in, []string{"TOFU_DIR=" + tofu, "TF_CLI_CONFIG_FILE=/dev/null"}, line...)
		took := time.Since(start)
		if r.code != 0 || strings.Count(r.stdout, "web") < hosts {
			t.Fatalf("%s: %d\n%s", what, r.code, tail(r.stderr, 20))
		}
		if best, ok := fastest[what]; !ok || took < best {
			fastest[what] = took
		}
	}
	for range rounds {
		measure("Ansible, from the JSON file", s.dir, "ansible-inventory", "-i", file, "--graph", "edge")
		measure("Ansible, from exocomp-inventory", dir, "ansible-inventory", "-i", "exocomp-inventory", "--graph", "edge")
		measure("exocomp-inventory --list", dir, "./exocomp-inventory", "--list")
		measure("the script over tofu show -json", s.dir, script, "--list")
	}
	for what, took := range fastest {
		t.Logf("%-33s %6.3f s", what, took.Seconds())
	}
	ratio := fastest["Ansible, from exocomp-inventory"].Seconds() / fastest["Ansible, from the JSON file"].Seconds()
	s.holds(ratio <= limit, fmt.Sprintf("Ansible takes %.2f times as long as from the JSON file, at most %.1f", ratio, limit))
	s.holds(fastest["exocomp-inventory --list"] < fastest["the script over tofu show -json"], "exocomp-inventory is faster than the script over tofu show -json")
}
