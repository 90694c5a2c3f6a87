//go:build long

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestLongUsageOfPlansThatNeedAPerson(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	destroys := s.gate("destroy")
	dir := s.infra("edge", thisMachine(), leaving("old", destroys.count(), 1))
	play := s.playbook("p", rawPlay("tf:edge", "true"))
	s.converge("edge", play)

	s.infra("edge", thisMachine(), leaving("old", destroys.count(), 0))
	s.ok("workspace", "add", "edge", dir, "--approval", "destructive")
	s.failsStep1(4, []string{"delete terraform_data.old[0]", "destructive", "--approval never"}, "provision", "run", "edge", play, "--wait")
	r := s.cli("workspace", "apply", "edge", "--wait")
	s.holds(r.code == 4 && strings.Contains(r.stdout, "delete terraform_data.old[0]"), "workspace apply refuses it, too", r)
	destroys.ran(0)

	s.ok("workspace", "add", "edge", dir, "--approval", "never")
	s.ok("provision", "resume", "edge", "--wait")
	destroys.ran(1)

	s.infra("edge", thisMachine(), leaving("old", destroys.count(), 1))
	s.ok("workspace", "add", "edge", dir, "--approval", "always")
	s.failsStep1(4, []string{"create terraform_data.old[0]", "always"}, "provision", "run", "edge", play, "--wait")
}

func TestLongUsageOfAConfigurationThatCannotBePlanned(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	s.infra("edge", thisMachine())
	play := s.playbook("p", rawPlay("tf:edge", "true"))
	config := filepath.Join("infra", "edge", "main.tf")
	good := s.read(filepath.Join(s.dir, config))

	s.writeFile(config, "\n\noutput \"hosts\" {\n  value = terraform_data.none.output\n}\n")
	s.failsStep1(1, []string{"tofu plan", "main.tf:4", "terraform_data"}, "provision", "run", "edge", play, "--wait")
	s.writeFile(config, "output \"hosts\" {\n  value = {\n")
	s.failsStep1(1, []string{"main.tf:"}, "provision", "resume", "edge", "--wait")
	s.writeFile(config, "variable \"size\" {}\n"+good)
	s.failsStep1(1, []string{"main.tf:1", "size"}, "provision", "resume", "edge", "--wait")
	s.writeFile(config, good)
	s.ok("provision", "resume", "edge", "--wait")

	// As a job of its own: the same words.
	s.writeFile(config, "output \"hosts\" {\n  value = local.none\n}\n")
	r := s.cli("workspace", "apply", "edge", "--wait")
	s.holds(r.code == 1 && strings.Contains(r.stdout, "main.tf:2"), "workspace apply names the place, too", r)
}
