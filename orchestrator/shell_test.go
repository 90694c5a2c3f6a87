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
