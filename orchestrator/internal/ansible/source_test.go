package ansible

import (
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// What ansible-core 2.14 prints, and 2.19 in the cases named so.
var complaints = map[string]struct {
	log     string
	message string
	missing bool
}{
	"YAML": {
		`ERROR! We were unable to read either as JSON nor YAML, these are the errors we got from each:
JSON: Expecting value: line 1 column 1 (char 0)

Syntax Error while loading YAML.
  mapping values are not allowed in this context

The error appears to be in '/run/x/snapshot/site.yml': line 4, column 13, but may
be elsewhere in the file depending on the exact syntax problem.

The offending line appears to be:

  connection: local
  tasks: foo: bar
            ^ here`,
		"/home/ann/infra/site.yml, line 4, column 13: it is not YAML: mapping values are not allowed in this context", false,
	},
	"YAML, 2.19": {
		`[ERROR]: YAML parsing failed: Mapping values are not allowed in this context.
Origin: /run/x/snapshot/site.yml:4:13

3   connection: local
4   tasks: foo: bar
              ^ column 13`,
		"/home/ann/infra/site.yml, line 4, column 13: YAML parsing failed: Mapping values are not allowed in this context.", false,
	},
	"a role": {
		`[WARNING]: something
ERROR! the role 'nope' was not found in /run/x/snapshot/roles:/usr/share/ansible/roles:/run/x/snapshot

The error appears to be in '/run/x/snapshot/web.yml': line 4, column 11, but may
be elsewhere in the file depending on the exact syntax problem.`,
		"/home/ann/infra/web.yml, line 4, column 11: the role 'nope' was not found in /home/ann/infra/roles:/usr/share/ansible/roles:/home/ann/infra", true,
	},
	"a file of variables": {
		`PLAY [localhost] ***************************************************************
ERROR! vars file ../outside.yml was not found
Could not find file on the Ansible Controller.
If you are using a module and expect the file to exist on the remote, see the remote_src option`,
		"vars file ../outside.yml was not found Could not find file on the Ansible Controller.", true,
	},
	"a module": {
		`ERROR! couldn't resolve module/action 'nomodule'. This often indicates a misspelling, missing collection, or incorrect module path.

The error appears to be in '/run/x/snapshot/roles/web/tasks/main.yml': line 5, column 5, but may`,
		"/home/ann/infra/roles/web/tasks/main.yml, line 5, column 5: couldn't resolve module/action 'nomodule'.", true,
	},
	"nothing said": {"PLAY [all] ***", "stopped with an error (exit code 1)", false},
}

func TestAMistakeInAPlaybookIsNamedWhereThePersonHasIt(t *testing.T) {
	p := Playbook{Snapshot: "/run/x/snapshot", Entry: "site.yml", Path: "/home/ann/infra/site.yml"}
	for name, c := range complaints {
		t.Run(name, func(t *testing.T) {
			lines := strings.Split(p.Theirs(c.log), "\n")
			err := Verdict(End{ExitCode: 1}, NewProgress(), Scope{Workspace: "edge", LastLines: lines, Playbook: p, Again: "AGAIN"})
			f := orchestrator.FailureOf(err)
			if f == nil || f.Code != orchestrator.CodeFailed || !strings.Contains(f.Message, c.message) {
				t.Fatalf("failure %+v, want %q", f, c.message)
			}
			if tree := "which is what lies below /home/ann/infra,"; strings.Contains(f.Hint, tree) != c.missing {
				t.Errorf("hint %q; that it says what a run takes along: want %v", f.Hint, c.missing)
			}
			if c.log != "PLAY [all] ***" && !strings.HasSuffix(f.Hint, "; then: AGAIN") {
				t.Errorf("hint %q does not say how to go on", f.Hint)
			}
		})
	}
}

func TestNamesOfASnapshotAreThePersonsOwn(t *testing.T) {
	for _, c := range []struct {
		playbook   Playbook
		text, want string
	}{
		{Playbook{Snapshot: "/s", Entry: "plays/site.yml", Path: "/home/ann/plays/site.yml"}, "/s/plays/site.yml and /s/roles/x", "/home/ann/plays/site.yml and /home/ann/roles/x"},
		{Playbook{Snapshot: "/s", Entry: "site.yml", Path: "/site.yml"}, "/s/roles/x", "/roles/x"},
		// A link of another name leads to the playbook: its tree is elsewhere.
		{Playbook{Snapshot: "/s", Entry: "site.yml", Path: "/home/ann/link.yml"}, "/s/site.yml and /s/roles/x", "/home/ann/link.yml and roles/x"},
		{Playbook{Seed: "onboard.yml"}, "/s/site.yml", "/s/site.yml"},
		{Playbook{Snapshot: "/s", Entry: "site.yml"}, "/s/site.yml", "/s/site.yml"},
	} {
		if got := c.playbook.Theirs(c.text); got != c.want {
			t.Errorf("%+v: %q, want %q", c.playbook, got, c.want)
		}
	}
}
