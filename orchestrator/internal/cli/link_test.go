package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/ansible"
)

// linkDir makes an empty directory, and puts an exocomp-inventory on PATH.
func linkDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "linked")
	bin := filepath.Join(t.TempDir(), "linked", "bin")
	for _, d := range []string{dir, bin} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(bin, "exocomp-inventory"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	return dir
}

// look returns what lies in a directory: where links lead, what files hold.
func look(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if target, err := os.Readlink(path); err == nil {
			all[e.Name()] = "-> " + target
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(data)
	}
	return all
}

func TestLink(t *testing.T) {
	_, d := chain(t)
	dir := linkDir(t)
	first := run(t, d, "inventory", "link", "tf:edge", dir)
	laid := look(t, dir)
	if first.code != exitDone || len(laid) != 3 || laid["exocomp-inventory"] != "-> tf:edge" ||
		laid["tf:edge"] != "-> "+filepath.Join(os.Getenv("PATH"), "exocomp-inventory") {
		t.Fatalf("%+v: %v", first, laid)
	}
	for _, part := range []string{"linked tf:edge in " + dir, "export EXOCOMP_SOCKET=", "ansible-playbook -i exocomp-inventory PLAYBOOK"} {
		if !strings.Contains(first.err, part) {
			t.Errorf("%q lacks %q", first.err, part)
		}
	}
	settings := ansible.Settings(laid["ansible.cfg"])
	args := settings["ssh_connection"]["ssh_args"]
	for _, part := range []string{"StrictHostKeyChecking=yes", " host known-hosts %H'", "KnownHostsCommand=/", "UserKnownHostsFile=/dev/null",
		"GlobalKnownHostsFile=/dev/null", "VerifyHostKeyDNS=no", "NoHostAuthenticationForLocalhost=no"} {
		if !strings.Contains(args, part) {
			t.Errorf("ssh_args lack %s: %s", part, args)
		}
	}
	if settings["inventory"]["any_unparsed_is_failed"] != "True" || settings["defaults"]["inventory"] != "exocomp-inventory" {
		t.Errorf("%v", settings)
	}

	again := run(t, d, "inventory", "link", "tf:edge", dir)
	if now := look(t, dir); again.code != exitDone || !strings.Contains(again.err, "linked already") || len(now) != 3 || now["ansible.cfg"] != laid["ansible.cfg"] {
		t.Errorf("again: %+v: %v", again, now)
	}
	// All of them instead, here; the other name still means what it says.
	t.Chdir(dir)
	all := run(t, d, "inventory", "link")
	if now := look(t, dir); all.code != exitDone || now["exocomp-inventory"] != laid["tf:edge"] || now["tf:edge"] != laid["tf:edge"] {
		t.Errorf("all: %+v: %v", all, now)
	}
}

// TestLinkRenewsItsOwn and leaves alone what a person has changed, unless it says
// too little.
func TestLinkRenewsItsOwn(t *testing.T) {
	_, d := chain(t)
	dir := linkDir(t)
	config := filepath.Join(dir, "ansible.cfg")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func() outcome { return run(t, d, "inventory", "link", "tf:edge", dir) }
	if got := link(); got.code != exitDone {
		t.Fatal(got)
	}
	laid := look(t, dir)["ansible.cfg"]

	write(signed("\n[defaults]\n# of an older release\n"))
	if got := link(); got.code != exitDone || look(t, dir)["ansible.cfg"] != laid {
		t.Errorf("its own, older: %+v", got)
	}
	mine := strings.Replace(laid, "= True", "= yes", 1) + "[privilege_escalation]\nbecome = True\n"
	write(mine)
	if got := link(); got.code != exitDone || look(t, dir)["ansible.cfg"] != mine {
		t.Errorf("changed, and says enough: %+v", got)
	}
	for name, text := range map[string]string{
		"switched off": strings.Replace(laid, "StrictHostKeyChecking=yes", "StrictHostKeyChecking=no", 1),
		"somebody's":   "[defaults]\ninventory = hosts\n",
		"empty":        "",
	} {
		write(text)
		got := link()
		if got.code != exitRefused || look(t, dir)["ansible.cfg"] != text || !strings.Contains(got.err, "[ssh_connection] ssh_args = ") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for section, setting := range map[string]string{"[defaults]": "transport = paramiko", "[ssh_connection]": "ssh_executable = /usr/local/bin/other"} {
		text := strings.Replace(mine, section+"\n", section+"\n"+setting+"\n", 1)
		write(text)
		if got := link(); got.code != exitRefused || look(t, dir)["ansible.cfg"] != text || !strings.Contains(got.err, section+" "+setting) {
			t.Errorf("%s: %+v", setting, got)
		}
	}
	write("")
	if got := link(); !strings.Contains(got.err, "[inventory] any_unparsed_is_failed = True") {
		t.Errorf("%+v", got)
	}
}

// TestLinkTouchesNothingOfOthers: everything that stands in the way is named, and
// nothing is laid beside it.
func TestLinkTouchesNothingOfOthers(t *testing.T) {
	svc, d := chain(t)
	dir := linkDir(t)
	if err := os.WriteFile(filepath.Join(dir, "tf:edge"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/somewhere", filepath.Join(dir, "exocomp-inventory")); err != nil {
		t.Fatal(err)
	}
	got := run(t, d, "inventory", "link", "tf:edge", dir)
	if now := look(t, dir); got.code != exitRefused || len(now) != 2 || now["tf:edge"] != "mine" || now["exocomp-inventory"] != "-> /somewhere" ||
		!strings.Contains(got.err, dir+"/tf:edge is there") || !strings.Contains(got.err, dir+"/exocomp-inventory is there") {
		t.Errorf("%+v: %v", got, now)
	}

	open := linkDir(t)
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if got := run(t, d, "inventory", "link", "tf:edge", open); got.code != exitRefused || !strings.Contains(got.err, "everybody may write") || len(look(t, open)) != 0 {
		t.Errorf("where Ansible reads no ansible.cfg: %+v", got)
	}
	if os.Geteuid() == 0 { // else there is no giving away
		foreign := linkDir(t)
		if err := os.Chown(foreign, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		if got := run(t, d, "inventory", "link", "tf:edge", foreign); got.code != exitRefused || !strings.Contains(got.err, "belongs to uid 65534") || len(look(t, foreign)) != 0 {
			t.Errorf("into somebody else's directory: %+v", got)
		}
	}
	dir = linkDir(t)
	if got := run(t, d, "inventory", "link", "tf:nope", dir); got.code != exitUsage || len(look(t, dir)) != 0 {
		t.Errorf("an unknown workspace: %+v", got)
	}
	if got := run(t, nil, "inventory", "link", "tf:edge", dir); got.code != exitNoDaemon || len(look(t, dir)) != 0 {
		t.Errorf("without a daemon: %+v", got)
	}
	if _, err := svc.AddWorkspace(t.Context(), orchestrator.Workspace{Name: "new", Dir: "/srv/new", Approval: orchestrator.ApprovalNever}); err != nil {
		t.Fatal(err)
	}
	if got := run(t, d, "inventory", "link", "tf:new", dir); got.code != exitDone || !strings.Contains(got.err, "exocomp workspace apply new") {
		t.Errorf("one that was never captured: %+v", got)
	}
	dir = linkDir(t)
	t.Setenv("PATH", dir)
	if got := run(t, d, "inventory", "link", "tf:edge", dir); got.code != exitRefused || !strings.Contains(got.err, "there is no exocomp-inventory") || len(look(t, dir)) != 0 {
		t.Errorf("without the executable: %+v", got)
	}
}

// TestLinkSaysWhatBeatsIt: a variable by which Ansible reads another file.
func TestLinkSaysWhatBeatsIt(t *testing.T) {
	_, d := chain(t)
	dir := linkDir(t)
	t.Setenv("ANSIBLE_CONFIG", "/etc/other.cfg")
	if got := run(t, d, "inventory", "link", "tf:edge", dir); !strings.Contains(got.err, "ANSIBLE_CONFIG is set") {
		t.Errorf("%+v", got)
	}
}

// TestTheKnownHostsOfOneAddress: ssh, whose %H it is, reads no others'.
func TestTheKnownHostsOfOneAddress(t *testing.T) {
	svc, d := chain(t)
	svc.Pins = append(svc.Pins,
		orchestrator.Pin{Host: "192.0.2.1", Port: 22, KeyType: "ssh-ed25519", Key: "ANOTHER"},
		orchestrator.Pin{Host: "web.example.org", Port: 22, KeyType: "ssh-ed25519", Key: "NAMED"})
	for address, want := range map[string]string{
		"192.0.2.1":        "192.0.2.1 ssh-ed25519 ANOTHER\n",
		"[192.0.2.1]:2222": "[192.0.2.1]:2222 ssh-ed25519 " + svc.Pins[0].Key + "\n",
		"Web.Example.org":  "web.example.org ssh-ed25519 NAMED\n",
		"192.0.2.9":        "",
	} {
		got := run(t, d, "host", "known-hosts", address)
		_, keys, _ := strings.Cut(got.out, "\n") // behind the comment
		if got.code != exitDone || keys != want || (want == "") != strings.Contains(got.err, "no pinned host key of "+address) {
			t.Errorf("%s: %+v, want %q", address, got, want)
		}
	}
}

func TestKnownHostsCommand(t *testing.T) {
	for path, want := range map[string]string{
		"/usr/bin/exocomp":        "/usr/bin/exocomp host known-hosts %H",
		"/opt/my tools/exocomp":   `"/opt/my tools/exocomp" host known-hosts %H`,
		"/opt/100%/exocomp":       "",
		"/opt/it's/exocomp":       "",
		"/opt/a;b/exocomp":        "",
		"/opt/{{ x }}/exocomp":    "",
		"/opt/a\n[b]\nc=/exocomp": "",
	} {
		got, err := knownHostsCommand(path)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", path, got, err)
		}
	}
}

func TestLinkMistakes(t *testing.T) {
	for line, want := range map[string]string{
		"a b c":     `unexpected argument "c": exocomp inventory link [tf:WORKSPACE] [DIR]` + "\n",
		"a b":       `"a" is no inventory` + "\n  next: an inventory is written tf:WORKSPACE",
		"tf:all":    `workspace name "all" is reserved`,
		"nowhere":   "; or, if a workspace is meant, write tf:nowhere\n",
		"./nowhere": "/nowhere\n",
	} {
		got := run(t, nil, append([]string{"inventory", "link"}, strings.Fields(line)...)...)
		if got.code != exitUsage || !strings.Contains(got.err, want) {
			t.Errorf("exocomp inventory link %s: %+v, want %q", line, got, want)
		}
	}
}
