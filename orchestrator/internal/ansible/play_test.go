package ansible

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/test/nethost"
	"github.com/exocomp/exocomp/test/nethost/nethosttest"
)

// site is a person's playbook with an ansible.cfg and a callback plugin of its
// own, a template and a variable that is exocomp's to give.
func site(t *testing.T, plays string) Playbook {
	t.Helper()
	root := snapshot(t, map[string]string{
		"ansible.cfg":                    "[defaults]\ncallback_plugins = plugins/callback\nforks = 3\n[inventory]\nenable_plugins = ini\n",
		"plugins/callback/theirs.py":     theirCallback,
		"plays/site.yml":                 plays,
		"plays/group_vars/all.yml":       "greeting: hello\n",
		"plays/templates/greeting.j2":    "{{ greeting }} from {{ inventory_hostname }}\n",
		"plays/roles/web/tasks/main.yml": "- ansible.builtin.raw: touch \"$HOME/role\"\n",
	})
	return Playbook{Snapshot: root, Entry: "plays/site.yml"}
}

const theirCallback = `
from ansible.plugins.callback import CallbackBase
DOCUMENTATION = "name: theirs\ntype: notification\nshort_description: x\ndescription: [x]\n"
class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "theirs"
    def v2_playbook_on_start(self, playbook):
        self._display.display("their callback runs")
`

func TestPlay(t *testing.T) {
	lab := nethosttest.Lab(t)
	b := newBench(t, lab)
	web1 := nethosttest.Host(t, lab, nethost.HostOptions{Name: "web1"})
	vacant, err := lab.VacantAddr()
	if err != nil {
		t.Fatal(err)
	}
	one := map[string]*nethost.Host{"web1": web1}
	inventory, pins := inventoryOf(t, one, nil)
	withDead, _ := inventoryOf(t, map[string]*nethost.Host{"web1": web1, "web2": nil}, map[string]map[string]any{
		"web2": {"ansible_host": vacant, "ansible_user": "root"},
	})
	withLocal, _ := inventoryOf(t, map[string]*nethost.Host{"web1": web1, "here": nil}, map[string]map[string]any{
		"here": {"ansible_connection": "local"},
	})
	play := func(t *testing.T, inventory []byte, plays string, args ...string) ran {
		t.Helper()
		return b.run(t, Input{Playbook: site(t, plays), Inventory: inventory, KnownHosts: pins, Args: args})
	}

	t.Run("converges", func(t *testing.T) {
		r := play(t, withLocal, `
- hosts: web
  roles: [web]
  tasks:
    - ansible.builtin.template: {src: greeting.j2, dest: "{{ lookup('env', 'TMPDIR') if inventory_hostname == 'here' else '/etc' }}/greeting"}
    - name: Fails and does not matter
      ansible.builtin.command: "false"
      ignore_errors: true
    - block:
        - name: Fails and is rescued
          ansible.builtin.fail: {msg: no}
      rescue:
        - ansible.builtin.debug: {msg: rescued}
    - name: Delegated
      ansible.builtin.copy: {content: x, dest: "{{ lookup('env', 'HOME') }}/delegated"}
      delegate_to: localhost
`, "--limit=web1,here", "--skip-tags=never", "-e", `{"extra": 1}`)
		if r.err != nil {
			t.Fatal(r.err)
		}
		wantOnHost(t, web1, "hello from web1\n", "cat", "/etc/greeting")
		if !strings.Contains(r.log, "their callback runs") {
			t.Error("the person's own callback plugin did not run")
		}
		// For both, the remote temporary directory is below HOME: the login's on
		// a host, the run's here.
		wantOnHost(t, web1, "/root/role\n/root/.ansible/tmp\n", "sh", "-c", "ls -d /root/role /root/.ansible/tmp /\\$HOME 2>/dev/null | sort -r")
		for _, name := range []string{"role", "delegated", ".ansible/tmp"} {
			if _, err := os.Stat(filepath.Join(b.work, "a/home", name)); err != nil {
				t.Errorf("a task that ran here left nothing in the run's HOME: %v", err)
			}
		}
		for _, h := range []string{"web1", "here"} {
			if rep := reportOf(t, r, h); rep.State != orchestrator.HostChanged || rep.Message != "" {
				t.Errorf("%s is reported as %+v, want changed without a message", h, rep)
			}
		}
		if !r.progress.Ended || r.progress.TaskResults < 12 {
			t.Errorf("ended %v with %d task results, want true and at least 12", r.progress.Ended, r.progress.TaskResults)
		}
	})

	t.Run("failing task", func(t *testing.T) {
		r := play(t, withDead, `
- hosts: all
  gather_facts: false
  tasks:
    - name: Greet
      ansible.builtin.raw: echo hello
    - name: Break
      ansible.builtin.command: sh -c 'echo the disk is full >&2; exit 3'
    - name: Never reached
      ansible.builtin.raw: echo no
`)
		wantCode(t, r.err, orchestrator.CodeFailed, `task "Break" failed on web1`, "return code 3: the disk is full", `task "Greet" could not reach web2`)
		if rep := reportOf(t, r, "web2"); rep.State != orchestrator.HostUnreachable || rep.Task != "Greet" {
			t.Errorf("web2 is reported as %+v, want unreachable in task Greet", rep)
		}
	})

	t.Run("no_log and loops", func(t *testing.T) {
		r := play(t, inventory, `
- hosts: all
  gather_facts: false
  tasks:
    - name: Quiet
      ansible.builtin.fail: {msg: the password is hunter2}
      no_log: true
      ignore_errors: true
    - name: Loop
      ansible.builtin.fail: {msg: "bad {{ item }}"}
      when: item == 'b'
      loop: [a, b]
`)
		wantCode(t, r.err, orchestrator.CodeFailed, `task "Loop" failed on web1: item b: bad b`)
		events, err := os.ReadFile(filepath.Join(b.work, "events"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(events), "hunter2") {
			t.Error("the events hold what no_log hides")
		}
	})

	nobody := map[string]struct {
		plays string
		args  []string
		want  []string
	}{
		"typo in hosts": {plays: "- hosts: webz\n  tasks: [{ping: }]\n", want: []string{"hosts: webz matched none of here, web1"}},
		"limit elsewhere": {
			plays: "- hosts: web1\n  tasks: [{ping: }]\n", args: []string{"--limit=here"},
			want: []string{"hosts: web1 matched none of", "--limit here"},
		},
		"limit nowhere": {
			plays: "- hosts: web1\n  tasks: [{ping: }]\n", args: []string{"--limit=webz"},
			want: []string{"--limit webz matched none of"},
		},
		"tags": {
			plays: "- hosts: web1\n  tasks: [{ping: , tags: a}]\n", args: []string{"--tags=b"},
			want: []string{"--tags b"},
		},
		"no tasks": {plays: "- hosts: web1\n", want: []string{"have no tasks"}},
	}
	for name, c := range nobody {
		t.Run("nobody: "+name, func(t *testing.T) {
			r := play(t, withLocal, c.plays, c.args...)
			wantCode(t, r.err, orchestrator.CodeFailed, append(c.want, "converged nobody: ")...)
		})
	}

	t.Run("one play of two unmatched", func(t *testing.T) {
		r := play(t, inventory, "- name: Databases\n  hosts: db*\n  tasks: [{ping: }]\n- hosts: web\n  gather_facts: false\n  tasks: [{raw: echo, when: false}]\n")
		if r.err != nil {
			t.Fatal(r.err)
		}
		if w := r.progress.Warnings(); len(w) != 1 || !strings.Contains(w[0], `play "Databases" matched no hosts (hosts: db*)`) {
			t.Errorf("warnings are %q, want one about the play Databases", w)
		}
	})

	t.Run("broken playbook", func(t *testing.T) {
		r := play(t, inventory, "- hosts: web\n  tusks: []\n")
		wantCode(t, r.err, orchestrator.CodeFailed, "exit code 4", "tusks")
	})

	t.Run("variables are data", func(t *testing.T) {
		key := "ssh-ed25519 AAAA two  spaces {{ lookup('pipe', 'touch " + b.work + "/ran') }}"
		r := b.run(t, Input{
			Playbook:  site(t, "- hosts: web\n  gather_facts: false\n  tasks: [{copy: {content: '{{ exocomp_fleet_pubkey }}|{{ n.list[0] }}', dest: /etc/key}}]\n"),
			Inventory: inventory, KnownHosts: pins,
			Vars: map[string]any{"exocomp_fleet_pubkey": key, "n": map[string]any{"list": []any{"{{ 1 + 1 }}"}}},
			Args: []string{"-e", "exocomp_fleet_pubkey=theirs"},
		})
		if r.err != nil {
			t.Fatal(r.err)
		}
		wantOnHost(t, web1, key+"|{{ 1 + 1 }}", "cat", "/etc/key")
	})

	t.Run("some hosts", func(t *testing.T) {
		r := b.run(t, Input{
			Playbook:  site(t, "- hosts: all\n  gather_facts: false\n  tasks: [{raw: echo}]\n"),
			Inventory: withDead, KnownHosts: pins, Hosts: []string{"web1"},
		})
		if r.err != nil {
			t.Fatal(r.err)
		}
		if n := len(r.progress.Report().Hosts); n != 1 {
			t.Errorf("%d hosts were played against, want web1 alone", n)
		}
	})
}

// Whatever an inventory, group_vars, a play or a person's -e say: a host whose
// key is not the pinned one gets no login, and a pinned one no detour.
func TestPinsHoldAgainstEverySource(t *testing.T) {
	lab := nethosttest.Lab(t)
	b := newBench(t, lab)
	h := nethosttest.Host(t, lab, nethost.HostOptions{Name: "web1"})
	hosts := map[string]*nethost.Host{"web1": h}
	escapes := map[string]string{}
	for _, name := range []string{"ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args", "ansible_sftp_extra_args", "ansible_scp_extra_args"} {
		escapes[name] = fmt.Sprintf("-F none -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ProxyCommand='touch %s/escaped; nc %%h %%p'", b.work)
	}
	escapes["ansible_host_key_checking"] = "false"
	escapes["ansible_ssh_host_key_checking"] = "false"
	escapes["ansible_ssh_executable"] = b.work + "/own-ssh"
	escapes["ansible_sftp_executable"] = b.work + "/own-ssh"
	escapes["ansible_control_path"] = b.work + "/own-%%C"
	escapes["ansible_control_path_dir"] = b.work
	if err := os.WriteFile(b.work+"/own-ssh", []byte("#!/bin/sh\ntouch "+b.work+"/escaped\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	yaml := func(indent string) string {
		var s strings.Builder
		for k, v := range escapes {
			fmt.Fprintf(&s, "%s%s: \"%s\"\n", indent, k, v)
		}
		return s.String()
	}
	root := snapshot(t, map[string]string{
		"ansible.cfg":          "[defaults]\nhost_key_checking = false\n[ssh_connection]\ncontrol_path = " + b.work + "/own-%%C\nssh_args = -o StrictHostKeyChecking=no\nssh_common_args = -o StrictHostKeyChecking=no\n",
		"group_vars/all.yml":   yaml(""),
		"host_vars/web1.yml":   yaml(""),
		"more.yml":             yaml(""),
		"site.yml":             "- hosts: web1\n  gather_facts: false\n  vars_files: [more.yml]\n  vars:\n" + yaml("    ") + "  tasks:\n    - name: Push\n      copy: {content: x, dest: /etc/pushed}\n      vars:\n" + yaml("        ") + "    - set_fact: {ansible_ssh_common_args: '" + strings.ReplaceAll(escapes["ansible_ssh_common_args"], "'", "''") + "'}\n    - name: Again\n      raw: echo\n    - name: Delegated\n      raw: echo\n      delegate_to: web1\n",
		"templates/ignored.j2": "",
	})
	vars := map[string]map[string]any{"web1": {}}
	for k, v := range escapes {
		vars["web1"][k] = v
	}
	inventory, pins := inventoryOf(t, hosts, vars)
	in := Input{
		Playbook: Playbook{Snapshot: root, Entry: "site.yml"}, Inventory: inventory, KnownHosts: pins,
		Args: []string{"-e", "@more.yml"},
	}
	wantNoEscape := func(t *testing.T) {
		t.Helper()
		left, err := filepath.Glob(b.work + "/own-[^s]*")
		if err != nil || len(left) > 0 {
			t.Errorf("control sockets outside the run's directory: %v (%v)", left, err)
		}
		if _, err := os.Stat(b.work + "/escaped"); err == nil {
			t.Error("a variable had its own program run")
		}
	}

	t.Run("pinned", func(t *testing.T) {
		if r := b.run(t, in); r.err != nil {
			t.Fatal(r.err)
		}
		wantOnHost(t, h, "x", "cat", "/etc/pushed")
		wantNoEscape(t)
	})
	t.Run("another machine answers", func(t *testing.T) {
		impostor, err := lab.MITM(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := impostor.Close(); err != nil {
				t.Error(err)
			}
		}()
		r := b.run(t, in)
		wantCode(t, r.err, orchestrator.CodeFailed, `task "Push" could not reach web1: the host key is not the pinned one`, "exocomp host onboard --rotate edge/web1")
		if n := len(impostor.Logins()); n != 0 {
			t.Errorf("the impostor had %d logins", n)
		}
		wantNoEscape(t)
	})
	t.Run("nothing pinned", func(t *testing.T) {
		in := in
		in.KnownHosts = nil
		before := len(h.Logins())
		r := b.run(t, in)
		wantCode(t, r.err, orchestrator.CodeFailed, "could not reach web1: no host key is pinned for this address")
		if n := len(h.Logins()) - before; n != 0 {
			t.Errorf("%d logins on a host without a pin", n)
		}
	})
}

// The variables that choose another port or address lead to where no pin is.
func TestAnotherPortHasNoPin(t *testing.T) {
	lab := nethosttest.Lab(t)
	b := newBench(t, lab)
	h := nethosttest.Host(t, lab, nethost.HostOptions{Name: "web1"})
	vacant, err := lab.VacantAddr()
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := lab.Proxy(context.Background(), vacant+":22", h.HostPort())
	if err != nil {
		t.Fatal(err)
	}
	inventory, pins := inventoryOf(t, map[string]*nethost.Host{"web1": h}, nil)
	r := b.run(t, Input{
		Playbook:  site(t, "- hosts: web1\n  gather_facts: false\n  vars: {ansible_ssh_host: "+vacant+"}\n  tasks: [{raw: echo}]\n"),
		Inventory: inventory, KnownHosts: pins,
	})
	wantCode(t, r.err, orchestrator.CodeFailed, "no host key is pinned for this address")
	if proxy.Accepted() == 0 {
		t.Error("the run never came to the other address: the test shows nothing")
	}
}
