package ansible

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/seeds"
	"github.com/exocomp/exocomp/test/nethost"
	"github.com/exocomp/exocomp/test/nethost/nethosttest"
)

func TestWaitSSHNamesTheSilentHosts(t *testing.T) {
	lab := nethosttest.Lab(t)
	b := newBench(t, lab)
	vacant, err := lab.VacantAddr()
	if err != nil {
		t.Fatal(err)
	}
	mute := nethosttest.Host(t, lab, nethost.HostOptions{Name: "mute"})
	if err := mute.PauseSSHD(t.Context()); err != nil {
		t.Fatal(err)
	}
	inventory, _ := inventoryOf(t, map[string]*nethost.Host{
		"ready": nethosttest.Host(t, lab, nethost.HostOptions{Name: "ready", Port: 2222}),
		"mute":  mute, "dead": nil, "here": nil,
	}, map[string]map[string]any{
		"dead": {"ansible_host": vacant},
		"here": {"ansible_connection": "local", "ansible_host": vacant},
	})
	const bound = 6
	begun := time.Now()
	r := b.run(t, Input{
		Playbook: Playbook{Seed: seeds.WaitSSH}, Inventory: inventory,
		Vars: map[string]any{"exocomp_ssh_wait": bound},
	})
	wantCode(t, r.err, orchestrator.CodeFailed, `task "Wait for the banner" failed on dead, mute`)
	if d := time.Since(begun); d < bound*time.Second {
		t.Errorf("it gave up after %v, want %d s", d, bound)
	}
	if s := reportOf(t, r, "ready").State; s != orchestrator.HostOK {
		t.Errorf("the ready host is %s", s)
	}
}

// The callback plugin never breaks a run, and a run inside a run is its own.
func TestEventsWithoutADescriptor(t *testing.T) {
	install, err := Locate(t.Context(), os.Getenv("EXOCOMP_TEST_ANSIBLE_PLAYBOOK"), "")
	if err != nil {
		t.Fatal(err)
	}
	root := snapshot(t, map[string]string{
		"site.yml":   "- hosts: all\n  gather_facts: false\n  tasks: [{raw: 'true'}]\n",
		"outer.yml":  "- hosts: all\n  gather_facts: false\n  tasks:\n    - raw: " + install.Path + " -i localhost, -c local inner.yml\n",
		"inner.yml":  "- hosts: all\n  gather_facts: false\n  tasks: [{name: Inner, raw: 'true'}]\n",
		"events.txt": "",
	})
	p, _ := prepare(t, Input{
		Playbook:  Playbook{Snapshot: root, Entry: "site.yml"},
		Inventory: []byte(`{"all":{"hosts":{"here":{"ansible_connection":"local"}}}}`),
	})
	run := func(t *testing.T, playbook, fd string, files ...*os.File) {
		t.Helper()
		argv := append(slices.Clone(p.Argv[1:len(p.Argv)-1]), playbook)
		cmd := exec.CommandContext(t.Context(), install.Path, argv...)
		cmd.Dir, cmd.ExtraFiles = p.Dir, files
		cmd.Env = append(p.Env, "PATH="+searchPath(install.Path, os.Getenv("PATH")), seeds.EventsFD+"="+fd)
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), "exocomp_events") {
			t.Errorf("with descriptor %q: %v\n%s", fd, err, out)
		}
	}
	for _, fd := range []string{"9", "x"} { // closed, and no number
		run(t, "site.yml", fd)
	}
	t.Run("not opened for appending", func(t *testing.T) {
		f, err := os.OpenFile(root+"/events.txt", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		run(t, "site.yml", "3", f)
		if s := file(t, root+"/events.txt"); s != "" {
			t.Errorf("it wrote %q", s)
		}
	})
	t.Run("a run inside the run", func(t *testing.T) {
		f, err := os.OpenFile(root+"/events.txt", os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		run(t, "outer.yml", "3", f)
		s := file(t, root+"/events.txt")
		if !strings.Contains(s, `"event": "end"`) || strings.Contains(s, "Inner") {
			t.Errorf("events:\n%s", s)
		}
	})
}
