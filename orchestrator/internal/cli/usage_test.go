package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/exocomp/exocomp/orchestrator/internal/ansible"
)

// TestMistakesSayWhatIsWrong, in the words of the command's own help.
func TestMistakesSayWhatIsWrong(t *testing.T) {
	for line, want := range map[string]string{
		"workspace add":                                       "NAME and DIR are missing: exocomp workspace add NAME DIR\n  next: exocomp workspace add --help",
		"workspace add edge":                                  "DIR is missing: exocomp workspace add NAME DIR\n",
		"host onboard":                                        "HOST is missing: exocomp host onboard HOST...\n",
		"workspace list x":                                    `unexpected argument "x": exocomp workspace list` + "\n",
		"jobs show a b":                                       `unexpected argument "b": exocomp jobs show JOB` + "\n",
		"provision run edge site.yml x":                       `unexpected argument "x": exocomp provision run WORKSPACE PLAYBOOK [-- ARGS]` + "\n",
		"provision run edge":                                  "PLAYBOOK is missing: exocomp provision run WORKSPACE PLAYBOOK [-- ARGS]\n",
		"provision run edge -- --check":                       "PLAYBOOK is missing",
		"completion bash x":                                   `unexpected argument "x": exocomp completion bash` + "\n",
		"provison run edge":                                   `unknown command "provison" for "exocomp"` + "\n  next: did you mean: exocomp provision\n",
		"provison run edge --wait":                            `unknown command "provison" for "exocomp"` + "\n  next: did you mean: exocomp provision\n",
		"provision rum edge --wait":                           `unknown command "rum" for "exocomp provision"` + "\n  next: did you mean: exocomp provision run\n",
		"provision c edge":                                    "did you mean: exocomp provision cancel\n",
		"completion nope":                                     `unknown command "nope" for "exocomp completion"` + "\n",
		"provision list --jsn":                                "unknown flag: --jsn\n  next: did you mean: --json\n",
		"provision run -edge p":                               "unknown shorthand flag: 'e' in -edge\n  next: exocomp provision run --help\n",
		"workspace list -x":                                   "unknown shorthand flag: 'x' in -x\n  next: exocomp workspace list --help\n",
		"jobs list --state bored":                             `there is no job state "bored"` + "\n  next: use queued, running, succeeded, failed, cancelled or interrupted\n",
		"wizardry":                                            `unknown command "wizardry" for "exocomp"` + "\n  next: exocomp --help\n",
		"provision run e p --egress http":                     `--egress "http": it is no number, such as 443, or 443,8443 for two` + "\n",
		"provision run e p --ssh-wait 5":                      `--ssh-wait "5": it is no duration, such as 90s, 5m or 1h30m` + "\n",
		"provision run e p --ssh-wait":                        "flag needs an argument: --ssh-wait: a duration, such as",
		"provision run e p --wait=maybe":                      `--wait "maybe": it is no truth value`,
		"events --after x":                                    `--after "x": it is no number, such as 100` + "\n",
		"jobs list --limit x":                                 `--limit "x": it is not a number` + "\n",
		"provision run edge site.yml --limit a":               "unknown flag: --limit\n  next: what is ansible-playbook's stands behind --: exocomp provision run WORKSPACE PLAYBOOK -- --limit …\n",
		"provision run edge site.yml -e k=v":                  "stands behind --: exocomp provision run WORKSPACE PLAYBOOK -- -e …\n",
		"handoff run edge p --ssh-wait 5m":                    "unknown flag: --ssh-wait\n",
		"handoff run edge":                                    "PLAYBOOK is missing: exocomp handoff run WORKSPACE PLAYBOOK [-- ARGS]\n",
		"provision resume edge --from ssh-wait --failed-only": "--from begins a run that deals with all hosts: leave --failed-only out\n",
		"provision resume edge --check":                       "stands behind --: exocomp provision resume RUN|WORKSPACE -- --check …\n",
		"provision run --nope edge site.yml":                  "unknown flag: --nope\n  next: exocomp provision run --help\n",
		"provision status edge --check":                       "unknown flag: --check\n  next: exocomp provision status --help\n",
	} {
		got := run(t, nil, strings.Fields(line)...)
		if got.code != exitUsage || !strings.Contains(got.err, want) {
			t.Errorf("exocomp %s: %+v, want %q", line, got, want)
		}
	}
}

// TestPassableFlagsCanBePassed: nobody is sent behind -- to be refused there.
func TestPassableFlagsCanBePassed(t *testing.T) {
	for _, flag := range passable {
		if _, err := ansible.ParseArgs([]string{flag}); err != nil && strings.Contains(err.Error(), "cannot be passed") {
			t.Error(err)
		}
	}
}

// TestMistakesAreFoundWithoutADaemon, all of them at once.
func TestMistakesAreFoundWithoutADaemon(t *testing.T) {
	dir := t.TempDir()
	play := filepath.Join(dir, "nope.yml")
	onboard := filepath.Join(dir, "none.yml")
	got := run(t, nil, "provision", "run", "ed ge", play, "--onboard-playbook", onboard)
	for _, part := range []string{`"ed ge"`, play, onboard} {
		if got.code != exitUsage || !strings.Contains(got.err, part) {
			t.Errorf("%+v, want %s", got, part)
		}
	}
}

// TestFlagsSayWhatTheyTake: a placeholder is a word for a value, and what a
// resume leaves as it is has no default.
func TestFlagsSayWhatTheyTake(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		help := c.Flags().FlagUsages()
		for _, odd := range []string{" long ", " many ", " string ", " int ", " ints "} {
			if strings.Contains(help, odd+"  ") {
				t.Errorf("%s --help: a flag takes a%s:\n%s", c.CommandPath(), odd, help)
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk((&app{}).root())
	help := run(t, nil, "provision", "resume", "--help").out
	if strings.Contains(help, "(default 5m0s)") {
		t.Errorf("resume keeps what is not given:\n%s", help)
	}
	if help := run(t, nil, "provision", "run", "--help").out; !strings.Contains(help, "(default 5m0s)") {
		t.Errorf("run waits so long by default:\n%s", help)
	}
}
