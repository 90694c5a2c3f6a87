package orchestrator_test

import (
	"os/exec"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

func TestAShellReadsAQuotedWordAsItIs(t *testing.T) {
	for _, word := range []string{"", "plain-1.2_a/b:c", `vm.a["it's $(x)"]`, "a b\n`c`", `\`, "~", "#x", "k=v;w"} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+orchestrator.ShellQuote(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("sh reads %s as %q (%v), want %q", orchestrator.ShellQuote(word), out, err, word)
		}
	}
	if got := orchestrator.ShellCommand("cd", "/srv/edge one"); got != "cd '/srv/edge one'" {
		t.Errorf("command %s", got)
	}
}

func TestACommandIsGivenAgainWithAKeyFile(t *testing.T) {
	run := func(path, schedule string, args ...string) string {
		return orchestrator.WithIdentity(orchestrator.Job{Workspace: "edge", Spec: orchestrator.JobSpec{
			Play: &orchestrator.PlaySpec{Playbook: orchestrator.PlaybookRef{Path: path}}, Args: args, Schedule: schedule,
		}}.AgainCommand())
	}
	for got, want := range map[string]string{
		run("/site.yml", ""):                                       "exocomp playbook run /site.yml --inventory tf:edge --ssh-identity FILE",
		run("/site.yml", "", "--tags=a b"):                         "exocomp playbook run /site.yml --inventory tf:edge --ssh-identity FILE -- '--tags=a b'",
		run("/it's -- odd/site.yml", ""):                           `exocomp playbook run '/it'\''s -- odd/site.yml' --inventory tf:edge --ssh-identity FILE`,
		run("/it's -- odd/site.yml", "", "--check"):                `exocomp playbook run '/it'\''s -- odd/site.yml' --inventory tf:edge --ssh-identity FILE -- --check`,
		run("/site.yml", "fleet-converge", "--diff"):               "exocomp schedule add fleet-converge … --ssh-identity FILE -- PLAYBOOK (or ssh_identity in the playbook's rule in exocomp.hcl); then: exocomp schedule run-now fleet-converge",
		orchestrator.WithIdentity("exocomp provision resume edge"): "exocomp provision resume edge --ssh-identity FILE",
	} {
		if got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
