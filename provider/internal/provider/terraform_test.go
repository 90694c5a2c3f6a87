package provider

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestTerraformDoesTheSame walks the ways through the resource with Terraform,
// which is optional.
func TestTerraformDoesTheSame(t *testing.T) {
	t.Parallel()
	terraform, err := exec.LookPath("terraform")
	if err != nil {
		t.Skip("skipped: terraform not installed")
	}
	s := newSite(t,
		`variable "password" {`, `  type = string`, `  ephemeral = true`, `  default = "`+canary+`"`, `}`,
		edge(`  secrets_wo = { DB_PASSWORD = var.password }`, `  vars = { ports = [80, 0.1], nested = { a = null } }`))
	s.tool, s.process = terraform, true

	s.daemon.set(func() { s.daemon.failAt = "ansible-play" })
	s.fails(applyArgs, "step 4, ansible-play", "untaint ADDRESS")
	s.daemon.set(func() { s.daemon.failAt = "" })
	s.apply()
	s.plan(false)
	s.runs(2)

	s.write("play/site.yml", "- hosts: all # changed\n")
	s.hold(true)
	cmd, out := s.start()
	s.running(3)
	signal(t, cmd, syscall.SIGINT)
	s.exit(cmd.Wait())
	s.says(flat(out.String()), "Interrupted; run "+digits(2)+" goes on")
	s.hold(false)
	s.apply()
	s.plan(false)
	s.runs(2, 1)

	if got := s.daemon.lastAsked(); got.Env["DB_PASSWORD"].Reveal() != canary || string(got.Spec.Vars) != `{"nested":{"a":null},"ports":[80,0.1]}` {
		t.Errorf("asked for %s", got.Spec.Vars)
	}
	if strings.Contains(s.read("terraform.tfstate"), canary) {
		t.Error("the state holds the secret")
	}
	if code, out := s.tofu("destroy", "-auto-approve", "-no-color"); code != 0 {
		t.Error(out)
	}
}
