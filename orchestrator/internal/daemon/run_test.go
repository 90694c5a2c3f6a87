package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/playbook"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// uploaded stores a tree with a playbook in plays/ and files for its arguments.
func (d *Daemon) uploaded(t *testing.T) orchestrator.PlaybookRef {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"ansible.cfg": "", "plays/site.yml": "- hosts: all\n", "plays/vars/more.yml": "a: 1\n", "plays/hosts": "web1\n", "top.yml": "b: 2\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("vars", filepath.Join(root, "plays", "link")); err != nil {
		t.Fatal(err)
	}
	s, err := playbook.Take(t.Context(), root, "plays/site.yml")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.snapshots.put(t.Context(), s.Digest, s.NewReader()); err != nil {
		t.Fatal(err)
	}
	return orchestrator.PlaybookRef{Path: filepath.Join(root, "plays", "site.yml"), Entry: "plays/site.yml", Digest: s.Digest}
}

func TestAFileThatAnArgumentNamesMustBeInTheTree(t *testing.T) {
	d := bare(t)
	ref := d.uploaded(t)
	check := func(args ...string) error {
		return d.checkSpec(orchestrator.RunProvision, &orchestrator.RunSpec{Playbook: ref, SSHWait: time.Minute, Args: args})
	}
	for _, args := range [][]string{
		nil, {"-e", "a=1"}, {"-e", "@vars/more.yml"}, {"-e@./vars/more.yml"}, {"--limit", "web1,@hosts"}, {"-e", "@link/more.yml"}, {"-e", "mail=a@b"},
	} {
		if err := check(args...); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
	for _, args := range [][]string{{"-e", "@nope.yml"}, {"-e", "@vars"}, {"-e", "@top.yml"}, {"--limit", "web1:@nope"}} {
		err := check(args...)
		_, name, _ := strings.Cut(args[1], "@")
		if orchestrator.CodeOf(err) != orchestrator.CodeInvalid || !strings.Contains(err.Error(), "@"+name+" is no file") || !strings.Contains(err.Error(), ref.Path) {
			t.Errorf("%q: %v, want a refusal that names the file and where it is looked for", args, err)
		}
	}
}

func TestAResumeThatKeepsAKeyFileWhichIsGoneNamesTheFlag(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	run := orchestrator.Run{Workspace: "edge", Spec: orchestrator.RunSpec{SSHIdentities: []string{gone}}}
	f := orchestrator.FailureOf(checkKept(run, rpc.ResumeSpec{}))
	if f == nil || !strings.Contains(f.Message, gone) || f.Hint != "give one that is there: exocomp provision resume edge --ssh-identity FILE" {
		t.Errorf("failure %+v", f)
	}
	if err := checkKept(run, rpc.ResumeSpec{SSHIdentities: []string{"/other"}}); err != nil {
		t.Errorf("one that replaces it: %v", err)
	}
}

// A call must end: nobody writes to the pipe, and the device has no end.
func TestAKeyFileThatIsNoFileIsRefusedByName(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, "/dev/zero"} {
		err := checkIdentity(path)
		if orchestrator.CodeOf(err) != orchestrator.CodeInvalid || !strings.Contains(err.Error(), path+": not a regular file") {
			t.Errorf("%s: %v, want a refusal that names it", path, err)
		}
		run := orchestrator.Run{Workspace: "edge", Spec: orchestrator.RunSpec{SSHIdentities: []string{path}}}
		if err := checkKept(run, rpc.ResumeSpec{}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s, kept by a resume: %v, want a refusal that names it", path, err)
		}
	}
}
