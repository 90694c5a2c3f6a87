package seeds

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestEverySeedHasAName(t *testing.T) {
	names := []string{WaitSSH, Onboard, Verify, VerifyLogin, Events}
	slices.Sort(names)
	found, err := fs.Glob(files, "*")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	if !slices.Equal(found, names) {
		t.Errorf("embedded are %q, named %q", found, names)
	}
	for _, n := range names {
		if len(Read(n)) == 0 {
			t.Errorf("%s is empty", n)
		}
	}
}

// Onboarding must work where only ansible-core is: no task may come from
// another collection, or from wherever a short name leads.
func TestSeedsNeedOnlyBuiltins(t *testing.T) {
	task := regexp.MustCompile(`^ {4,}(- )?([a-z_]+(\.[a-z_.]+)*):( |$)`)
	keywords := []string{"name", "when", "vars", "block", "register", "loop", "loop_control", "changed_when", "check_mode", "delegate_to", "run_once"}
	for _, n := range []string{WaitSSH, Onboard, Verify, VerifyLogin} {
		modules := 0
		for line := range strings.Lines(string(Read(n))) {
			m := task.FindStringSubmatch(strings.TrimRight(line, "\n"))
			if m == nil {
				continue
			}
			switch indent := len(line) - len(strings.TrimLeft(line, " -")); {
			case strings.HasPrefix(m[2], "ansible.builtin."):
				modules++
			case strings.Contains(m[2], "."):
				t.Errorf("%s: %q is from another collection", n, m[2])
			case m[1] != "" && !slices.Contains(keywords, m[2]):
				t.Errorf("%s: the task %q (column %d) has no full name", n, m[2], indent)
			}
		}
		if modules < 2 {
			t.Errorf("%s: only %d tasks found; does this test still read it?", n, modules)
		}
	}
}
