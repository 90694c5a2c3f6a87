//go:build long

package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// TestLongPlayCannotSwitchVerificationOff: the play's own variables and ansible.cfg
// ask for no host key checking, and a host whose key has changed since its
// onboarding is not played all the same.
func TestLongPlayCannotSwitchVerificationOff(t *testing.T) {
	t.Parallel()
	s := newLabSite(t)
	s.start()
	h := s.host("web1")
	s.workspace("edge", map[string]vars{"web1": hostVars(h)})
	off := "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
	s.writeFile("plays/off/group_vars/all.yml", strings.Join([]string{
		"ansible_ssh_args: " + quoteYAML(off), "ansible_ssh_common_args: " + quoteYAML(off), "ansible_ssh_extra_args: " + quoteYAML(off),
		"ansible_host_key_checking: false", "ansible_ssh_host_key_checking: false", "",
	}, "\n"))
	s.writeFile("plays/off/ansible.cfg", "[defaults]\nhost_key_checking = False\n[ssh_connection]\nssh_args = "+off+"\nssh_common_args = "+off+"\nssh_extra_args = "+off+"\n")
	s.playbook("off", rawPlay("tf:edge", "false"))
	r, run := s.provision("edge", filepath.Join(s.dir, "plays/off/site.yml"), s.lightly()...)
	s.holds(r.code == 1 && run.Steps[2].State == orchestrator.StepSucceeded, "the first play fails after the onboarding", r)

	if err := h.RotateHostKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := len(h.Logins())
	s.playbook("off", rawPlay("tf:edge", "touch /tmp/played"))
	r = s.cli("provision", "resume", "edge", "--wait")
	failed := s.run("edge").Steps[3]
	s.holds(r.code == 1 && failed.State == orchestrator.StepFailed && strings.Contains(failed.Failure.Message, "key"), "the changed key is what fails", r)
	s.holds(strings.Contains(failed.Failure.Hint, "--rotate"), "the hint says how to go on", failed.Failure)
	s.holds(len(h.Logins()) == before, "nobody logged in", h.Logins()[before:])
	there, err := h.Exists("/tmp/played")
	s.holds(err == nil && !there, "nothing was played", err)
}
