package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// linked makes a directory as `exocomp inventory link` makes it. name is
// tf:<workspace>, or nothing for all inventories.
func (s *site) linked(name string) string {
	s.t.Helper()
	dir := filepath.Dir(s.writeFile(filepath.Join("linked", "of-"+name, "README"), ""))
	if name == "" {
		s.ok("inventory", "link", dir)
	} else {
		s.ok("inventory", "link", name, dir)
	}
	return dir
}

// stock runs a program in a directory as a person does who has Ansible, ssh and
// the daemon's socket. Its home is the site.
func (s *site) stock(dir string, env []string, line ...string) result {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Dir = dir
	cmd.Env = slices.Concat(os.Environ(), []string{"HOME=" + s.dir, "EXOCOMP_SOCKET=" + s.socket()}, env)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	r := result{args: line, stdout: stdout.String(), stderr: stderr.String()}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		r.code = exit.ExitCode()
	case err != nil:
		s.t.Fatalf("%v: %v", line, err)
	}
	return r
}

// unwrapped is what Ansible says on standard error, without its line breaks.
func (r result) unwrapped() string {
	return strings.ReplaceAll(strings.ReplaceAll(r.stderr, "-\n", "-"), "\n", " ")
}

// TestGateInventory: stock Ansible in the layout that `inventory link` makes.
func TestGateInventory(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	s.workspaceOutputs("edge", vars{"ansible_inventory": vars{"all": vars{
		"vars": vars{"log": filepath.Join(s.dir, "played"), "motd": "{{ 1 + 1 }}"},
		"children": vars{
			"web": vars{"hosts": vars{"web1": local, "web2": local}},
			"db":  vars{"hosts": vars{"db1": local}},
		},
	}}})
	s.ok("workspace", "apply", "edge", "--wait")
	dir := s.linked("tf:edge")
	s.writeFile(filepath.Join("linked", "of-tf:edge", "site.yml"),
		rawPlay("tf:edge", "echo all {{ inventory_hostname }} >>{{ log }}")+rawPlay("tf:edge:&web", "echo web {{ inventory_hostname }} >>{{ log }}"))
	s.writeFile(filepath.Join("linked", "of-tf:edge", "limited.yml"), rawPlay("all", "echo limited {{ inventory_hostname }} >>{{ log }}"))

	literal := s.stock(dir, nil, "ansible-playbook", "-i", "exocomp-inventory", "site.yml")
	s.holds(literal.code == 0 && literal.stderr == "" && !strings.Contains(literal.stdout, "WARNING"),
		"ansible-playbook -i exocomp-inventory site.yml works, without a warning", literal)
	limited := s.stock(dir, nil, "ansible-playbook", "-i", "exocomp-inventory", "--limit", "tf:edge", "limited.yml")
	s.holds(limited.code == 0 && limited.stderr == "", "with --limit tf:edge too", limited)
	played := strings.Split(strings.TrimSpace(s.read(filepath.Join(s.dir, "played"))), "\n")
	slices.Sort(played)
	s.holds(slices.Equal(played, []string{"all db1", "all web1", "all web2", "limited db1", "limited web1", "limited web2", "web web1", "web web2"}),
		"hosts: tf:edge means all hosts, tf:edge:&web those of the group", played)
	graph := s.stock(dir, nil, "ansible-inventory", "--graph", "edge")
	s.holds(graph.code == 0 && graph.stderr == "" && graph.stdout == "@edge:\n  |--db1\n  |--web1\n  |--web2\n", "ansible-inventory --graph edge shows it", graph)
	ping := s.stock(dir, nil, "ansible", "-i", "tf:edge", "tf:edge", "-m", "ping")
	s.holds(ping.code == 0 && ping.stderr == "" && strings.Count(ping.stdout, "SUCCESS") == 3, "ansible -m ping reaches its hosts, by the link's other name", ping)
	executable := s.stock(dir, nil, "ansible-inventory", "--list")
	file := s.stock(s.dir, nil, "ansible-inventory", "-i", filepath.Join(s.data(), "artifacts", "inventory", "edge.json"), "--list")
	s.holds(executable.code == 0 && executable.stdout == file.stdout && strings.Contains(file.stdout, "{{ 1 + 1 }}"),
		"ansible-inventory sees in it what it sees in the published file", executable, file)
}

// TestGateInventoryFailsClosed: whatever keeps an inventory from being read is a
// failure to stock Ansible, with one line that says why.
func TestGateInventoryFailsClosed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	hosts := func(names ...string) map[string]vars {
		all := map[string]vars{}
		for _, n := range names {
			all[n] = local
		}
		return all
	}
	s.workspace("edge", hosts("web1"))
	s.ok("workspace", "apply", "edge", "--wait")
	s.workspaceOutputs("plain", vars{"region": "fsn1"})
	edge, all := s.linked("tf:edge"), s.linked("")
	merged := s.stock(all, nil, "./exocomp-inventory", "--list")
	s.holds(merged.code == 0 && merged.stderr == "" && strings.Contains(merged.stdout, `"edge": {"hosts": ["web1"]}`), "without a name, it is all inventories", merged)

	says := func(what, dir string, env []string, parts ...string) {
		t.Helper()
		direct := s.stock(dir, env, "./exocomp-inventory", "--list")
		line := strings.TrimPrefix(strings.TrimSuffix(direct.stderr, "\n"), "exocomp-inventory: ")
		ok := direct.code != 0 && direct.stdout == "" && !strings.Contains(line, "\n")
		for _, p := range parts {
			ok = ok && strings.Contains(line, p)
		}
		s.holds(ok, what+": the executable fails with one clear line", direct, parts)
	}
	fails := func(what, dir string, env []string, parts ...string) {
		t.Helper()
		says(what, dir, env, parts...)
		play := s.stock(dir, env, "ansible-playbook", "-i", "exocomp-inventory", s.playbook("mark", rawPlay("all", "touch "+filepath.Join(s.dir, "marked"))))
		_, err := os.Stat(filepath.Join(s.dir, "marked"))
		s.holds(play.code != 0 && os.IsNotExist(err) && strings.Count(play.unwrapped(), "plugin:") == 1 && strings.Contains(play.unwrapped(), parts[0]),
			what+": ansible-playbook fails, plays nobody and says the line", play)
	}
	fails("an unknown workspace", all, []string{"EXOCOMP_INVENTORY=tf:nope"}, `"nope"`)
	says("one that was never captured", all, []string{"EXOCOMP_INVENTORY=tf:plain"}, "plain", "exocomp workspace apply plain")
	s.ok("workspace", "apply", "plain", "--wait")
	fails("a hostless one", all, []string{"EXOCOMP_INVENTORY=tf:plain"}, "tf:plain names no hosts")
	says("a hostless one among all", all, nil, "tf:plain names no hosts")
	s.ok("workspace", "remove", "plain")

	path := filepath.Join(s.data(), "artifacts", "inventory", "edge.json")
	content := s.read(path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	fails("a lost file", edge, nil, "tf:edge has lost its file", "exocomp workspace refresh edge")
	if err := os.WriteFile(path, []byte(strings.Replace(content, "web1", "web2", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	says("a tampered file", edge, nil, "differs from the ledger", "exocomp workspace refresh edge")
	s.ok("workspace", "refresh", "edge", "--wait")

	s.workspace("prod", hosts("web1", "db1"))
	s.ok("workspace", "apply", "prod", "--wait")
	fails("two workspaces with one name for a host", all, nil, "tf:edge and tf:prod both have a host called web1", "EXOCOMP_INVENTORY=tf:edge")
	for _, name := range []string{"tf:edge", "tf:prod"} {
		alone := s.stock(all, []string{"EXOCOMP_INVENTORY=" + name}, "./exocomp-inventory", "--list")
		s.holds(alone.code == 0 && alone.stderr == "" && strings.Contains(alone.stdout, `"web1": {"ansible_connection"`), name+" alone works", alone)
	}
	s.stop()
	fails("a daemon that is down", edge, nil, "no daemon")
}

// linkedSSHArgs returns the ssh options of a linked directory's ansible.cfg.
func (s *site) linkedSSHArgs(dir string) []string {
	s.t.Helper()
	for line := range strings.Lines(s.read(filepath.Join(dir, "ansible.cfg"))) {
		if args, ok := strings.CutPrefix(line, "ssh_args = "); ok {
			out := s.stock(dir, nil, "sh", "-c", fmt.Sprintf("printf '%%s\\n' %s", strings.TrimSpace(args)))
			return strings.Split(strings.TrimSpace(out.stdout), "\n")
		}
	}
	s.t.Fatal("its ansible.cfg has no ssh_args")
	return nil
}

// endMasters ends the connections that Ansible's ssh has left open.
func (s *site) endMasters() {
	s.t.Helper()
	sockets := filepath.Join(s.dir, ".ansible", "exocomp", "*")
	open := func() []string {
		found, err := filepath.Glob(sockets)
		if err != nil {
			s.t.Fatal(err)
		}
		return found
	}
	for _, path := range open() {
		s.stock(s.dir, nil, "ssh", "-F", "none", "-o", "ControlPath="+path, "-O", "exit", "host")
	}
	s.await("the end of ssh's masters", func() bool { return len(open()) == 0 })
}
