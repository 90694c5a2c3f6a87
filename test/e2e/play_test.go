package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// TestPlayIsGivenNothingOfTofuOrTheDaemon looks from inside a play at its
// environment, its snapshot and its work directory.
func TestPlayIsGivenNothingOfTofuOrTheDaemon(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	// What somebody's shell may hold who starts a daemon; some of it would
	// break tofu or Ansible besides.
	s.start(
		"TF_VAR_secret=canary-var", "TF_TOKEN_app_example_org=canary-token", "TF_CLI_ARGS=-canary-flag", "TF_LOG=TRACE",
		"TF_CLI_CONFIG_FILE=/canary/file", "TF_DATA_DIR=/canary/data",
		"AWS_SECRET_ACCESS_KEY=canary-cloud", "HCLOUD_TOKEN=canary-cloud",
		"ANSIBLE_STRATEGY=canary", "ANSIBLE_CONFIG=/canary/ansible.cfg", "ANSIBLE_VAULT_PASSWORD_FILE=/canary/vault",
		"ANSIBLE_SSH_ARGS=-o StrictHostKeyChecking=no", "SSH_AUTH_SOCK=/canary/agent", "PYTHONPATH=/canary/python",
		"EXOCOMP_TOKEN_FILE=/canary/token", "EXOCOMP_CONFIG=/canary/config", "LD_LIBRARY_PATH=/canary/lib", "BASH_ENV=/canary/bash",
	)
	s.workspace("edge", thisMachine())
	for _, name := range []string{
		"terraform.tfstate", "terraform.tfstate.backup", "prod.tfvars", "prod.auto.tfvars.json",
		".terraform/environment", ".git/config", "sub/terraform.tfstate", "sub/dev.tfvars",
	} {
		s.writeFile(filepath.Join("plays", "look", name), "canary-file\n")
	}
	s.writeFile("plays/look/files/page.html", "wanted\n")
	out := s.writeFile("look/README", "")
	out = filepath.Dir(out)
	look := "env > " + out + "/task.env; tr '\\0' '\\n' < /proc/$PPID/environ > " + out + "/parent.env; find . > " + out + "/snapshot; find \"$HOME/..\" -type f > " + out + "/work"
	play := s.playbook("look", strings.Join([]string{
		"- hosts: tf:edge", "  gather_facts: false", "  tasks:",
		"    - name: Look at what a task is given",
		"      ansible.builtin.shell: " + quoteYAML(look),
		"    - name: Look at what Ansible itself is given",
		"      ansible.builtin.shell: " + quoteYAML("cat > "+out+"/ansible.env"),
		"      args:", "        stdin: " + quoteYAML("{{ lookup('ansible.builtin.pipe', 'env') }}"),
		"    - name: Look whether a file holds a secret of the daemon's",
		"      ansible.builtin.shell: " + quoteYAML("cd \"$HOME/..\" && find . -type f -exec cat {} + > "+out+"/contents"), "",
	}, "\n"))
	s.converge("edge", play)

	allowed := []string{
		"HOME", "TMPDIR", "PATH", "PWD", "OLDPWD", "SHLVL", "_", "LANG", "LC_ALL", "USER", "LOGNAME", "TZ", "TERM", "SSH_AUTH_SOCK", "EXOCOMP_ATTEMPT",
		"PYTHONDONTWRITEBYTECODE", "ANSIBLE_NOCOLOR", "ANSIBLE_PIPELINING", "ANSIBLE_TRANSPORT", "ANSIBLE_RETRY_FILES_ENABLED", "ANSIBLE_REMOTE_TMP", "ANSIBLE_INVENTORY_ENABLED",
		"ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED", "ANSIBLE_HOST_KEY_CHECKING", "ANSIBLE_LOCAL_TEMP", "ANSIBLE_CALLBACK_PLUGINS",
		"ANSIBLE_PARAMIKO_RECORD_HOST_KEYS", "ANSIBLE_PARAMIKO_HOST_KEY_AUTO_ADD",
	}
	for _, name := range []string{"task.env", "parent.env", "ansible.env"} {
		env := s.read(filepath.Join(out, name))
		s.holds(strings.Contains(env, "HOME="+s.runtime()), name+" was seen from inside", env)
		for line := range strings.Lines(env) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			if !slices.Contains(allowed, key) && !strings.HasPrefix(key, "EXOCOMP_") || strings.Contains(value, "canary") {
				t.Errorf("%s holds %s", name, line)
			}
		}
	}
	got := strings.Fields(s.read(filepath.Join(out, "snapshot")))
	slices.Sort(got)
	want := []string{".", "./files", "./files/page.html", "./site.yml"}
	s.holds(slices.Equal(slices.DeleteFunc(got, func(f string) bool { return f == "./sub" }), want), "the snapshot holds what the play needs and no more", got)

	secrets := map[string]string{
		"the operator's token": filepath.Join(s.runtime(), rpc.OperatorTokenFile),
		"the reader's token":   filepath.Join(s.runtime(), rpc.ReaderTokenFile),
		"the daemon's key":     filepath.Join(s.data(), "identity.txt"),
	}
	contents := s.read(filepath.Join(out, "contents"))
	s.holds(strings.Contains(contents, "wanted"), "the work directory was read from inside")
	for what, file := range secrets {
		for line := range strings.Lines(s.read(file)) {
			line = strings.TrimSpace(line)
			if line != "" && !strings.HasPrefix(line, "#") && strings.Contains(contents, line) {
				t.Errorf("the work directory holds %s", what)
			}
		}
	}
	for _, part := range []string{"canary", "PRIVATE KEY"} {
		s.holds(!strings.Contains(contents, part), "no file of the work directory holds "+part)
	}
	for _, part := range []string{"tfstate", "tfvars", ".terraform", ".git"} {
		s.holds(!strings.Contains(s.read(filepath.Join(out, "work")), part), "no "+part+" lies in the work directory")
	}
	_, err := os.Stat("/canary")
	s.holds(os.IsNotExist(err), "nothing was written to a directory of the daemon's environment")
}

// TestPlayThatMeetsNobodyFails: Ansible calls these successes.
func TestPlayThatMeetsNobodyFails(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	s.workspace("edge", thisMachine())
	typo := s.playbook("typo", rawPlay("tf:egde", "true"))
	r, run := s.provision("edge", typo)
	last := func(run orchestrator.Run) string {
		if f := run.Steps[3].Failure; f != nil {
			return f.Message
		}
		return ""
	}
	s.holds(r.code == 1 && strings.Contains(last(run), "converged nobody") && strings.Contains(last(run), "tf:egde"),
		"a typo in hosts: fails as converged nobody", r, run.Steps[3].Failure)
	s.holds(strings.Contains(r.stdout, "exocomp inventory show"), "and says how to compare", r)

	s.playbook("typo", rawPlay("tf:edge:!here", "true"))
	r = s.cli("provision", "resume", "edge", "--wait")
	s.holds(r.code == 1 && strings.Contains(last(s.run("edge")), "converged nobody"), "a play that leaves all hosts out fails so, too", r)

	s.playbook("typo", rawPlay("tf:edge", "true"))
	r = s.cli("provision", "resume", "edge", "--wait", "--", "--limit", "elsewhere")
	s.holds(r.code == 1 && strings.Contains(last(s.run("edge")), "converged nobody") && strings.Contains(last(s.run("edge")), "--limit elsewhere"),
		"a disjoint --limit fails so, too", r)
	s.fails(2, []string{"--inventory", "cannot be passed"}, "provision", "resume", "edge", "--", "--inventory", "x")

	s.playbook("typo", rawPlay("nobody", "true")+rawPlay("tf:edge", "true"))
	s.ok("provision", "resume", "edge", "--wait", "--", "--limit", "tf:edge")
	warned := slices.ContainsFunc(s.events("--run", string(run.ID)), func(e orchestrator.Event) bool {
		return e.Warning && strings.Contains(e.Message, "nobody")
	})
	s.holds(warned, "one unmatched play of several is a warning event")
}
