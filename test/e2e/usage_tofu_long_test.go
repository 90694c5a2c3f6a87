//go:build long

package e2e

import (
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
