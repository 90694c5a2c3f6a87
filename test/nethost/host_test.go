package nethost_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/exocomp/exocomp/test/nethost"
	"github.com/exocomp/exocomp/test/nethost/nethosttest"
)

// Hosts that come up at the same time are machines of their own: name, users,
// files, processes and login rules.
func TestHostsAreSeparate(t *testing.T) {
	t.Parallel()
	lab := nethosttest.Lab(t)
	options := []nethost.HostOptions{
		{Name: "web1"},
		{Name: "web2", User: "admin", Port: 2222, HostKeyTypes: []nethost.KeyType{nethost.ED25519, nethost.RSA}},
		{Name: "web3"},
	}
	hosts := make([]*nethost.Host, len(options))
	var all sync.WaitGroup
	for i, o := range options {
		all.Go(func() {
			h, err := lab.Host(t.Context(), o)
			if err != nil {
				t.Errorf("make host: %v", err)
				return
			}
			hosts[i] = h
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	web1, web2, web3 := hosts[0], hosts[1], hosts[2]

	if got := mustLogin(t, lab, web1, "hostname; id -un; readlink -f /usr/bin/python3 >/dev/null && echo python"); got != "web1\nroot\npython" {
		t.Errorf("web1 says %q", got)
	}
	if got := mustLogin(t, lab, web2, "hostname; id -un; sudo -n id -un"); got != "web2\nadmin\nroot" {
		t.Errorf("web2 says %q", got)
	}
	if web2.PublicHostKey(nethost.ECDSA) != "" || !strings.HasPrefix(web2.HostKeyFingerprint(nethost.RSA), "SHA256:") {
		t.Error("web2 has not the types of host keys that were asked for")
	}

	const name = "nethost-made"
	if _, err := web1.Exec(t.Context(), "useradd", "--create-home", name); err != nil {
		t.Fatal(err)
	}
	if !exists(t, web1, "/home/"+name) {
		t.Error("the user that was made on web1 is not there")
	}
	if data, err := web3.ReadFile("/etc/passwd"); err != nil || strings.Contains(string(data), name) {
		t.Errorf("web3 got web1's user (error: %v)", err)
	}
	if _, err := user.Lookup(name); err == nil {
		t.Error("this machine got web1's user")
	}

	// Nothing of this machine that a test has no need of.
	for _, path := range []string{lab.Dir(), "/root/.bashrc", "/root/.ssh/id_ed25519", "/home/exocomp", "/dev/mem", "/sys/fs/cgroup/cgroup.procs"} {
		if exists(t, web1, path) {
			t.Errorf("web1 sees %s", path)
		}
	}
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if exists(t, web1, cwd) {
		t.Errorf("web1 sees this checkout at %s", cwd)
	}
	list, err := web1.Processes()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || !strings.Contains(list[0].Args[0], "sshd") || list[0].UID != 0 {
		t.Errorf("web1 runs %v, want its sshd alone", list)
	}
	if files, err := filepath.Glob("/etc/ssh/ssh_host_*_key.pub"); err != nil || len(files) > 0 {
		for _, f := range files {
			if data, err := os.ReadFile(f); err == nil && strings.HasPrefix(string(data), web1.PublicHostKey(nethost.ED25519)) {
				t.Errorf("web1 has this machine's host key %s", f)
			}
		}
	}
}

// A link on a host that leads to an absolute path leads there on the host.
func TestFiles(t *testing.T) {
	t.Parallel()
	lab := nethosttest.Lab(t)
	h := nethosttest.Host(t, lab, nethost.HostOptions{Name: "files", LateSSHD: true})
	if err := h.WriteFile("/etc/nethost-test", []byte("there"), 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Exec(t.Context(), "ln", "-s", "/etc/nethost-test", "/tmp/link"); err != nil {
		t.Fatal(err)
	}
	if data, err := h.ReadFile("/tmp/link"); err != nil || string(data) != "there" {
		t.Errorf("read over the link: %q, %v", data, err)
	}
	if out, err := h.Exec(t.Context(), "stat", "-c", "%a %U", "/etc/nethost-test"); err != nil || string(out) != "640 root\n" {
		t.Errorf("stat: %q, %v", out, err)
	}
	if _, err := os.Stat("/etc/nethost-test"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("this machine got the host's file: %v", err)
	}
	if _, err := h.ReadFile("/nowhere"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read what is not there: %v", err)
	}
	out, err := h.Exec(t.Context(), "sh", "-c", "echo out; echo complaint >&2; exit 3")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || string(out) != "out\n" || !strings.Contains(err.Error(), "complaint") {
		t.Errorf("exec: %q, %v", out, err)
	}
}

// Real Ansible manages a host over its address, as root and with become, and
// the logins that this takes are counted on the host.
func TestAnsible(t *testing.T) {
	t.Parallel()
	lab := nethosttest.Lab(t)
	h := nethosttest.Host(t, lab, nethost.HostOptions{Name: "web1", User: "admin"})
	dir := t.TempDir()
	inventory, err := json.Marshal(map[string]any{"all": map[string]any{"hosts": map[string]any{"web1": map[string]any{
		"ansible_host": h.Addr(), "ansible_user": h.User(), "ansible_become": true,
		"ansible_ssh_private_key_file": lab.Key().Path, "ansible_python_interpreter": "/usr/bin/python3",
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"ansible.cfg": "",
		"hosts.json":  string(inventory),
		"known_hosts": h.Addr() + " " + h.PublicHostKey(nethost.ED25519) + "\n",
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "ansible", "-i", filepath.Join(dir, "hosts.json"), "-m", "ping", "web1")
	cmd.Env = append(os.Environ(), "ANSIBLE_CONFIG="+filepath.Join(dir, "ansible.cfg"), "ANSIBLE_LOCAL_TEMP="+dir,
		"ANSIBLE_SSH_ARGS=-F none -o ControlMaster=no -o StrictHostKeyChecking=yes -o UserKnownHostsFile="+filepath.Join(dir, "known_hosts"))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"ping": "pong"`) {
		t.Fatalf("ansible: %v\n%s", err, out)
	}
	logins := h.Logins()
	if len(logins) == 0 {
		t.Fatal("no login was counted")
	}
	for _, l := range logins {
		if l.User != "admin" || l.Method != "publickey" || l.Fingerprint != lab.Key().Fingerprint || l.From != lab.Gateway() || l.Time.IsZero() {
			t.Errorf("counted a strange login %+v", l)
		}
	}
}
