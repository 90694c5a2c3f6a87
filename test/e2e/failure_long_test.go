//go:build long

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/exocomp/exocomp/orchestrator"
)

// TestLongFailureOfACaptureIsExplainedAndResumed: what was applied stays applied;
// corrected outputs go on in the same run.
func TestLongFailureOfACaptureIsExplainedAndResumed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	applies := s.gate("apply")
	once := resource("count", applies.count())
	dir := s.infra("edge", nil, once)
	config := filepath.Join("infra", "edge", "main.tf")
	s.writeFile(config, once+"output \"hosts\" {\n  value = [\"web1\"]\n}\n")
	play := s.playbook("p", rawPlay("tf:edge", "true"))

	r, run := s.provision("edge", play)
	s.holds(r.code == 1 && run.State == orchestrator.RunFailed, "an output of another shape fails the chain", r)
	f := run.Steps[0].Failure
	s.holds(f != nil && strings.Contains(f.Message, "hosts") && strings.Contains(f.Hint, "resume"),
		"the failure names the output and what to do", f)
	for _, step := range run.Steps[1:] {
		s.holds(step.State == orchestrator.StepBlocked, "later steps stay blocked", step)
	}
	s.holds(strings.Contains(s.read(filepath.Join(dir, "terraform.tfstate")), "terraform_data"), "what was applied stays applied")
	s.fails(2, []string{"edge"}, "inventory", "show", "edge")

	s.infra("edge", thisMachine(), once)
	s.ok("provision", "resume", string(run.ID), "--wait")
	applies.ran(1)
	s.holds(s.run("edge").State == orchestrator.RunSucceeded, "corrected outputs go on in the same run")
}

// TestLongFailureWordsAreHarmless: what a host, a task or a template says never
// reaches a terminal as more than text.
func TestLongFailureWordsAreHarmless(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	const hostile = "\x1b]0;owned\x07\x1b[2J\u009b31m\u202eevil %s %n"
	s.workspace("edge", thisMachine())
	// YAML takes some control characters only as escapes
	escaped := strings.ReplaceAll(quoteYAML(hostile), "\u009b", `\u009b`)
	play := s.playbook("p", "- hosts: tf:edge\n  gather_facts: false\n  tasks:\n"+
		"    - name: "+escaped+"\n      ansible.builtin.fail:\n        msg: "+escaped+"\n")
	r, run := s.provision("edge", play)
	s.holds(r.code == 1 && run.Steps[3].State == orchestrator.StepFailed, "the play fails", r)
	job := string(run.Steps[3].Job)
	said := []result{
		r,
		s.ok("provision", "status", "edge"),
		s.ok("provision", "logs", "edge"),
		s.ok("jobs", "show", job),
		s.ok("jobs", "logs", job),
		s.ok("jobs", "list"),
		s.ok("events", "--workspace", "edge"),
	}
	s.holds(strings.Contains(said[1].stdout, "evil %s %n"), "the words themselves are shown", said[1])

	// Names that only an error message could carry.
	s.workspace("evil", map[string]vars{"web" + hostile: {"ansible_host": "192.0.2.1"}})
	r, _ = s.provision("evil", play)
	s.holds(r.code == 1, "a host of that name is refused", r)
	said = append(said, r,
		s.ok("provision", "status", "evil"),
		s.fails(2, []string{"evil"}, "host", "onboard", "edge/"+hostile),
		s.fails(2, []string{"evil"}, "provision", "run", "edge", hostile),
		s.fails(2, []string{"evil"}, "workspace", "show", hostile),
		s.fails(2, []string{"evil"}, hostile),
	)
	for _, r := range said {
		for _, text := range []string{r.stdout, r.stderr} {
			if i := strings.IndexFunc(text, func(c rune) bool { return c != '\n' && c != '\t' && !unicode.IsGraphic(c) }); i >= 0 {
				t.Errorf("exocomp %.40q prints %q", r.args, text[max(0, i-60):min(len(text), i+60)])
			}
		}
	}
}

// What only the configuration can correct is corrected there: the hint's own
// commands go on with it. So is a mistake in the playbook, which is told by the
// person's own file.
func TestLongFailureOfAnInventoryIsCorrectedAndResumed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	s.infra("edge", map[string]vars{})
	site := s.writeFile("plays/site.yml", "- hosts: tf:edge\n  gather_facts: false\n  tasks: no: list\n")
	r, run := s.provision("edge", site)
	hint := run.Steps[1].Failure.Hint
	s.holds(r.code == 4 && strings.HasSuffix(hint, "then: exocomp workspace apply edge --wait && exocomp provision resume edge") &&
		!strings.Contains(r.String(), "then  exocomp"), "the one hint is to apply and to resume", hint, r)

	s.infra("edge", thisMachine())
	s.ok("workspace", "apply", "edge", "--wait")
	r = s.cli("provision", "resume", "edge", "--wait")
	play := s.run("edge").Steps[3]
	s.holds(r.code == 1 && play.State == orchestrator.StepFailed, "steps 2 and 3 take the new inventory", r)
	s.holds(strings.Contains(play.Failure.Message, site+", line 3, column ") && strings.Contains(play.Failure.Message, "mapping values are not allowed") &&
		strings.HasSuffix(play.Failure.Hint, "then: exocomp provision resume edge"), "the mistake is named with file, line and column", play.Failure)

	s.writeFile("plays/site.yml", "- hosts: tf:edge\n  gather_facts: false\n  tasks:\n    - raw: 'true'\n")
	s.ok("provision", "resume", "edge", "--wait")
}
