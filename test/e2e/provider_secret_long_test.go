//go:build long

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLongGateProviderSecrets: what is given in secrets_wo, a plain value or an
// ephemeral one, reaches the play's environment, also when the run is resumed,
// and is found nowhere else.
func TestLongGateProviderSecrets(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	r := s.root("main")
	seen := s.writeFile("seen/README", "")
	seen = filepath.Dir(seen)
	disk := filepath.Join(s.dir, "disk")
	// a shell task has the environment of ansible-playbook on a local host; what
	// it samples are the command lines of every process there is
	look := fmt.Sprintf("env | grep -e ^DB_PASSWORD= -e ^API_KEY= | sort >> %[1]s/env; tr '\\0' ' ' < /proc/self/status > /dev/null; cat /proc/[0-9]*/cmdline >> %[1]s/cmdlines; true", seen)
	canaries := []string{"canary-plain-5f0c", "canary-ephemeral-77ab"}
	r.env = []string{"TF_VAR_plain=" + canaries[0], "TF_VAR_ephemeral=" + canaries[1], "TF_LOG=TRACE", "TF_LOG_PATH=" + filepath.Join(r.dir, "trace.log")}
	r.provision(attrs{
		"workspace": "edge", "playbook": s.playbook("site", rawPlay("tf:edge", look, needs(disk))), "inventory": thisMachine(),
		"secrets_wo": expr("{ DB_PASSWORD = var.plain, API_KEY = var.ephemeral }"), "secrets_wo_version": "1",
	}, "variable \"plain\" {\n  sensitive = true\n}\nvariable \"ephemeral\" {\n  type      = string\n  ephemeral = true\n}\n")

	want := "API_KEY=" + canaries[1] + "\nDB_PASSWORD=" + canaries[0] + "\n"
	plan := r.ok("plan", "-input=false", "-out=saved")
	shown := r.ok("show", "-json", "saved")
	r.ok("show", "saved")
	if err := os.Remove(filepath.Join(r.dir, "saved")); err != nil { // it holds every variable but ephemeral ones
		t.Fatal(err)
	}
	said := []string{plan.stdout, plan.stderr, plannedValues(shown.stdout)}
	failed := r.applyFails("failed at step 4, ansible-play")
	s.holds(s.read(filepath.Join(seen, "env")) == want, "both reach the play's environment", s.read(filepath.Join(seen, "env")))

	// resumed by hand, by a daemon that has only the ledger
	s.stop()
	s.start()
	resumed := s.cli("provision", "resume", "edge", "--wait")
	s.holds(s.read(filepath.Join(seen, "env")) == want+want, "and again when the run is resumed by another daemon", resumed)
	s.writeFile("disk", "")
	done := r.apply()
	s.holds(s.read(filepath.Join(seen, "env")) == want+want+want, "and when an apply resumes it", s.read(filepath.Join(seen, "env")))
	s.holdsRuns("edge", 1, "all of it is one run")
	empty := r.holdsEmpty("after it")

	said = append(said, failed.stdout, failed.stderr, resumed.stdout, resumed.stderr, done.stdout, done.stderr, empty.stdout, empty.stderr,
		r.ok("show", "-json").stdout, s.daemon.log.String(), s.ok("events", "--json").stdout, s.ok("provision", "logs", "edge").stdout,
		s.ok("provision", "status", "edge", "--json").stdout, s.ok("inventory", "show", "edge", "--content").stdout)
	for _, text := range said {
		for _, c := range canaries {
			if strings.Contains(text, c) {
				t.Errorf("%s is said in %s", c, text)
			}
		}
	}
	s.holds(!t.Failed(), "neither is in what tofu, exocomp and the daemon say")
	cmdlines := s.read(filepath.Join(seen, "cmdlines"))
	s.holds(strings.Contains(cmdlines, "ansible-playbook") && strings.Contains(cmdlines, "terraform-provider-exocomp") && !strings.Contains(cmdlines, "canary-"),
		"neither is in a command line while the play runs", cmdlines)
	files := holding(t, s.dir, seen, canaries...)
	s.holds(len(files) == 0, "neither is in a file: states, ledger and its log, control records, inventory, logs of TRACE", files)
	for _, name := range []string{"data/ledger.db", "roots/main/terraform.tfstate", "roots/main/trace.log", "data/artifacts/inventory/edge.json"} {
		info, err := os.Stat(filepath.Join(s.dir, name))
		s.holds(err == nil && info.Size() > 0, name+" was looked at", err)
	}

	r.env = nil
	r.provision(attrs{
		"workspace": "edge", "playbook": s.playbook("site", rawPlay("tf:edge", "true")),
		"inventory": map[string]vars{"web1": {"ansible_host": "192.0.2.1", "ansible_password": "x"}}, "vars": vars{"nested": []any{vars{"api_token": "y"}}},
	})
	r.fails([]string{`inventory["web1"]["ansible_password"] is named like a secret`, `vars["nested"][0]["api_token"] is named like a secret`,
		"give it in secrets_wo"}, "plan", "-input=false")
}
