package ansible

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/seeds"
)

func prepare(t *testing.T, in Input) (Prepared, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "w")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	in.Work = dir
	in.Install = Install{Path: "/opt/venv/bin/ansible-playbook"}
	p, err := Prepare(in)
	if err != nil {
		t.Fatal(err)
	}
	return p, dir
}

func TestPrepareOrdersTheArguments(t *testing.T) {
	root := snapshot(t, map[string]string{"plays/-site.yml": "[]"})
	p, dir := prepare(t, Input{
		Playbook: Playbook{Snapshot: root, Entry: "plays/-site.yml"}, Args: []string{"--extra-vars=a=1"},
		Hosts: []string{"web1", "web2"}, Vars: map[string]any{"exocomp_fleet_pubkey": "ssh-ed25519 AAAA who knows"},
	})
	want := []string{
		"/opt/venv/bin/ansible-playbook", "-i", dir + "/inventory/hosts.json", "--extra-vars=a=1", "--limit", "@" + dir + "/limit",
		"-e", "@" + dir + "/vars.json", "-e", "@" + dir + "/ssh.json", root + "/plays/-site.yml",
	}
	if diff := cmp.Diff(want, p.Argv); diff != "" {
		t.Errorf("argv (-want +got):\n%s", diff)
	}
	if p.Dir != root+"/plays" {
		t.Errorf("it runs in %s, want the playbook's directory", p.Dir)
	}
	if s := strings.Join(append(p.Argv, p.Env...), "\n"); strings.Contains(s, "AAAA") {
		t.Error("a variable stands in the arguments or the environment")
	}
	if got := file(t, dir+"/limit"); got != "web1\nweb2\n" {
		t.Errorf("the limit is %q", got)
	}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// The environment is built, not inherited.
func TestPrepareBuildsTheEnvironment(t *testing.T) {
	for _, name := range []string{"ANSIBLE_STRATEGY", "TF_VAR_x", "SSH_AUTH_SOCK", "PYTHONPATH", "LD_PRELOAD"} {
		t.Setenv(name, "/nonexistent/inherited")
	}
	p, dir := prepare(t, Input{Playbook: Playbook{Seed: seeds.Verify}, Path: "/a:rel:.::/b"})
	slices.Sort(p.Env)
	want := []string{
		"ANSIBLE_CALLBACK_PLUGINS=" + dir + "/callback:/usr/share/ansible/plugins/callback",
		"ANSIBLE_CONFIG=" + dir + "/seed/ansible.cfg",
		"ANSIBLE_HOST_KEY_CHECKING=True",
		"ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED=1",
		"ANSIBLE_INVENTORY_ENABLED=yaml,host_list,script,auto,ini,toml",
		"ANSIBLE_LOCAL_TEMP=" + dir + "/tmp",
		"ANSIBLE_NOCOLOR=1",
		"ANSIBLE_PARAMIKO_HOST_KEY_AUTO_ADD=False",
		"ANSIBLE_PARAMIKO_RECORD_HOST_KEYS=False",
		"ANSIBLE_PIPELINING=1",
		"ANSIBLE_REMOTE_TMP=$HOME/.ansible/tmp",
		"ANSIBLE_RETRY_FILES_ENABLED=0",
		"ANSIBLE_TRANSPORT=ssh",
		"HOME=" + dir + "/home",
		"LANG=C.UTF-8",
		"LC_ALL=C.UTF-8",
		"PATH=/opt/venv/bin:/a:/b",
		"PYTHONDONTWRITEBYTECODE=1",
		"TMPDIR=" + dir + "/tmp",
	}
	if diff := cmp.Diff(want, p.Env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

func TestPrepareHoldsSSHToThePins(t *testing.T) {
	for _, seeded := range []bool{true, false} {
		in := Input{Playbook: Playbook{Seed: seeds.Onboard}}
		if !seeded {
			in.Playbook = Playbook{Snapshot: snapshot(t, map[string]string{"site.yml": "[]"}), Entry: "site.yml"}
		}
		_, dir := prepare(t, in)
		var vars map[string]any
		if err := json.Unmarshal([]byte(file(t, dir+"/ssh.json")), &vars); err != nil {
			t.Fatal(err)
		}
		want := `-F none -o 'StrictHostKeyChecking=yes' -o 'UserKnownHostsFile="` + dir + `/known_hosts"' ` +
			`-o 'GlobalKnownHostsFile=none' -o 'KnownHostsCommand=none' -o 'UpdateHostKeys=no' -o 'ForwardAgent=no' ` +
			`-o 'ProxyCommand=none' -o 'IdentityFile=none' -o 'ControlMaster=auto' -o 'ControlPersist=60s'`
		if seeded {
			want += ` -o 'BatchMode=yes' -o 'PreferredAuthentications=publickey'`
		}
		if diff := cmp.Diff(want, vars["ansible_ssh_args"]); diff != "" {
			t.Errorf("ansible_ssh_args (-want +got):\n%s", diff)
		}
	}
}

func TestVariablesAreInert(t *testing.T) {
	key := "ssh-ed25519 AAAA two  spaces"
	got, err := inert(map[string]any{
		"key": key, "n": int64(1) << 60, "typed": map[string][]string{"a": {"{{ x }}", "plain"}}, "list": []any{"{% x %}", "{# x", "#jinja2: variable_start_string: '[['", nil},
	})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"key":"ssh-ed25519 AAAA two  spaces","list":[{"__ansible_unsafe":"{% x %}"},{"__ansible_unsafe":"{# x"},{"__ansible_unsafe":"#jinja2: variable_start_string: '[['"},null],` +
		`"n":1152921504606846976,"typed":{"a":[{"__ansible_unsafe":"{{ x }}"},"plain"]}}`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	if got, err := inert(nil); err != nil || got == nil {
		t.Errorf("no variables are %v, %v; want an empty object", got, err)
	}
}

func TestPrepareAgainDropsTheSocketsOfTheRunBefore(t *testing.T) {
	p, dir := prepare(t, Input{Playbook: Playbook{Seed: seeds.Onboard}})
	if err := os.WriteFile(dir+"/cp/0123456789", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(Input{Install: Install{Path: p.Argv[0]}, Work: dir, Playbook: Playbook{Seed: seeds.Verify}}); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir + "/cp"); err != nil || len(left) != 0 {
		t.Errorf("the control directory holds %v (%v)", left, err)
	}
}

func TestPrepareRefuses(t *testing.T) {
	root := snapshot(t, map[string]string{"site.yml": "[]"})
	for name, c := range map[string]struct {
		work, entry string
		code        orchestrator.Code
	}{
		"a work directory with %":    {work: "/tmp/%h", entry: "site.yml", code: orchestrator.CodeInternal},
		"a playbook that is missing": {work: t.TempDir(), entry: "none.yml", code: orchestrator.CodeNotFound},
		"a directory":                {work: t.TempDir(), entry: ".", code: orchestrator.CodeNotFound},
		"a playbook elsewhere":       {work: t.TempDir(), entry: "../site.yml", code: orchestrator.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Prepare(Input{Work: c.work, Playbook: Playbook{Snapshot: root, Entry: c.entry}})
			wantCode(t, err, c.code)
		})
	}
}

func TestTheNearestConfigRules(t *testing.T) {
	root := snapshot(t, map[string]string{
		"ansible.cfg":          "[defaults]\nremote_tmp = /var/tmp/x\n",
		"plays/deep/site.yml":  "[]",
		"plays/ansible.cfg":    "[other]\ncallback_plugins = no\n[defaults]\n# callback_plugins = no\nCallback_Plugins = one:/two ; three\n  :~/four\n",
		"aside/ansible.cfg":    "[defaults]\ncallback_plugins = no\n",
		"plays/deep/group.yml": "",
	})
	p, dir := prepare(t, Input{Playbook: Playbook{Snapshot: root, Entry: "plays/deep/site.yml"}})
	for _, want := range []string{
		"ANSIBLE_CONFIG=" + root + "/plays/ansible.cfg",
		"ANSIBLE_CALLBACK_PLUGINS=" + dir + "/callback:" + root + "/plays/one:/two:~/four",
		"ANSIBLE_REMOTE_TMP=$HOME/.ansible/tmp",
	} {
		if !slices.Contains(p.Env, want) {
			t.Errorf("the environment lacks %s: %q", want, p.Env)
		}
	}
	if err := os.Remove(root + "/plays/ansible.cfg"); err != nil {
		t.Fatal(err)
	}
	p, _ = prepare(t, Input{Playbook: Playbook{Snapshot: root, Entry: "plays/deep/site.yml"}})
	if !slices.Contains(p.Env, "ANSIBLE_CONFIG="+root+"/ansible.cfg") {
		t.Errorf("the root's ansible.cfg does not rule: %q", p.Env)
	}
	if slices.ContainsFunc(p.Env, func(s string) bool { return strings.HasPrefix(s, "ANSIBLE_REMOTE_TMP") }) {
		t.Error("the person's remote_tmp is overruled")
	}
}

func TestLocate(t *testing.T) {
	script := func(text string) string {
		path := filepath.Join(t.TempDir(), "ansible-playbook")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := script("echo 'ansible-playbook [core 2.19.11rc1] (detached)'")
	got, err := Locate(context.Background(), good, "")
	if want := (Install{Path: good, Version: "2.19.11rc1"}); err != nil || got != want {
		t.Errorf("Locate is %v, %v, want %v", got, err, want)
	}
	for path, words := range map[string][]string{
		"/nonexistent/ansible-playbook":                         {"ansible is missing", "apt-get install ansible-core", "exocomp.hcl"},
		script("echo 'ansible-playbook [core 2.13.0]'"):         {"2.13.0", "too old"},
		script("echo ansible-playbook 2.9.6"):                   {"does not answer --version"},
		script("echo broken python >&2; exit 1"):                {"broken python"},
		script("test \"$HOME\" != '" + os.Getenv("HOME") + "'"): {"does not answer --version"},
	} {
		_, err := Locate(context.Background(), path, "")
		wantCode(t, err, orchestrator.CodeFailed, words...)
	}
	t.Setenv("PATH", "/nonexistent")
	_, err = Locate(context.Background(), "", "")
	wantCode(t, err, orchestrator.CodeFailed, "PATH", "/nonexistent")
}

// The version is asked of the library where the script is an installed one;
// whatever else is called ansible-playbook answers for itself.
func TestVersionIsWhatTheCommandSays(t *testing.T) {
	install, err := Locate(t.Context(), os.Getenv("EXOCOMP_TEST_ANSIBLE_PLAYBOOK"), "")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), install.Path, "--version").Output()
	if err != nil || !strings.Contains(string(out), "[core "+install.Version+"]") {
		t.Errorf("%s is found to be %s and says %v: %.80q", install.Path, install.Version, err, out)
	}
	const imports = "\nfrom ansible.cli.playbook import main\n"
	for text, want := range map[string][]string{
		"#!/usr/bin/python3" + imports:             {"/usr/bin/python3"},
		"#! /opt/venv/bin/python3.12 -I" + imports: {"/opt/venv/bin/python3.12", "-I"},
		"#!/usr/bin/env python3" + imports:         {"/usr/bin/env", "python3"},
		"#!/bin/sh" + imports:                      nil,
		"#!/usr/bin/python3\nimport os\n":          nil,
		imports:                                    nil,
	} {
		path := filepath.Join(t.TempDir(), "ansible-playbook")
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		if got := interpreter(path); !slices.Equal(got, want) {
			t.Errorf("interpreter of %q is %q, want %q", text, got, want)
		}
	}
}

func file(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestOnlyFilesAreLookedInto(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "ansible.cfg")
	if err := syscall.Mkfifo(pipe, 0o700); err != nil {
		t.Fatal(err)
	}
	if argv := interpreter(pipe); argv != nil {
		t.Errorf("a named pipe has the interpreter %q", argv)
	}
	if _, err := readConfig(pipe); err == nil || !strings.Contains(err.Error(), pipe+": not a regular file") {
		t.Errorf("a named pipe: %v, want an error that names it", err)
	}
}

// What is left out stays out whatever limit a person gave, and Ansible divides
// one with a comma in it at its commas alone.
func TestALimitIsLimitedFurther(t *testing.T) {
	for limit, want := range map[string]string{
		"":          "all:@/w/limit",
		"web1":      "web1:@/w/limit",
		"web:!db":   "web:!db:@/w/limit",
		"web,db":    "web,db,@/w/limit",
		"web,&old":  "web,&old,@/w/limit",
		"@mine.txt": "@mine.txt:@/w/limit",
	} {
		argv := []string{"ansible-playbook", "--check"}
		if limit != "" {
			argv = append(argv, "--limit="+limit)
		}
		got := limitFurther(argv, "/w/limit")
		if want := []string{"ansible-playbook", "--check", "--limit", want}; !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", limit, got, want)
		}
	}
}
