// Package ansible drives ansible-playbook: where the executable is, the files,
// arguments and environment that a run gets ([Prepare]), what the events of the
// callback plugin in package seeds say about it ([Progress]), and whether it did
// its work ([Verdict]). It starts no run: a supervisor executes what is described
// here.
package ansible

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/child"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

// Install is a usable Ansible.
type Install struct {
	Path    string // of ansible-playbook, absolute
	Version string // of ansible-core, such as 2.14.18
}

// oldest is the first ansible-core that this package was written against.
var oldest = [2]int{2, 14}

var versionForm = regexp.MustCompile(`^ansible-playbook \[core (([0-9]+)\.([0-9]+)[^\] ]*)`)

// Locate finds the executable: configured is a path or a name, empty means
// `ansible-playbook` on PATH. The error is [orchestrator.CodeFailed] and says
// where it looked. scratch is a directory that the caller owns and in which
// nobody else locates Ansible meanwhile; empty means the system's for temporary
// files.
func Locate(ctx context.Context, configured, scratch string) (Install, error) {
	return locate(ctx, configured, scratch, child.VersionLimit)
}

func locate(ctx context.Context, configured, scratch string, limit time.Duration) (Install, error) {
	name := configured
	if name == "" {
		name = "ansible-playbook"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		e := orchestrator.Errorf(orchestrator.CodeFailed, "ansible is missing: no executable %q on the daemon's PATH %q", name, os.Getenv("PATH"))
		if filepath.IsAbs(name) {
			e = orchestrator.Errorf(orchestrator.CodeFailed, "ansible is missing: %q is not an executable file", name)
		}
		return Install{}, e.WithHint("apt-get install ansible-core, or name it in exocomp.hcl: ansible { path = \"/…/ansible-playbook\" }; then: exocomp doctor")
	}
	if path, err = filepath.Abs(path); err != nil {
		return Install{}, orchestrator.Errorf(orchestrator.CodeInternal, "locate ansible-playbook: %w", err)
	}
	out, err := versionOf(ctx, path, scratch, limit)
	if err != nil {
		return Install{}, orchestrator.Errorf(orchestrator.CodeFailed, "ask %s for its version: %w", path, err).
			WithHint("try it as the daemon's user: %s; then: exocomp doctor", orchestrator.ShellCommand(path, "--version"))
	}
	m := versionForm.FindStringSubmatch(out)
	if m == nil {
		return Install{}, orchestrator.Errorf(orchestrator.CodeFailed, "%s does not answer --version as ansible-core does: %.80q", path, out)
	}
	major, _ := strconv.Atoi(m[2]) // digits, by the expression
	minor, _ := strconv.Atoi(m[3])
	if major < oldest[0] || major == oldest[0] && minor < oldest[1] {
		return Install{}, orchestrator.Errorf(orchestrator.CodeFailed, "%s is ansible-core %s, which is too old", path, m[1]).
			WithHint("install ansible-core %d.%d or newer", oldest[0], oldest[1])
	}
	return Install{Path: path, Version: m[1]}, nil
}

// asks prints the first line of `ansible-playbook --version` without loading
// what plays need, which takes ten times as long.
const asks = `from ansible.release import __version__ as v; print("ansible-playbook [core %s]" % v)`

// maxScript bounds the ansible-playbook that is looked into: the script that an
// installation writes has a dozen lines.
const maxScript = 64 << 10

// interpreter returns the Python by which an installed ansible-playbook runs,
// with its arguments, as the script's first line says (execve(2)). It is nil
// for a wrapper, which knows by itself where Ansible is.
func interpreter(path string) []string {
	script, err := durable.ReadRegular(path, maxScript)
	if err != nil || !bytes.Contains(script, []byte("from ansible.cli.playbook import")) {
		return nil
	}
	line, _, _ := strings.Cut(string(script), "\n")
	line, ok := strings.CutPrefix(line, "#!")
	argv := strings.Fields(line)
	if !ok || len(argv) == 0 || !strings.Contains(line, "python") {
		return nil
	}
	return argv
}

// versionOf asks in a directory of its own: even for its version Ansible makes
// directories below HOME, and the daemon's user may have none. In scratch it is
// always the same one, so that a crash leaves no more than one.
func versionOf(ctx context.Context, path, scratch string, limit time.Duration) (_ string, err error) {
	home := filepath.Join(scratch, "ansible-version")
	if scratch == "" {
		home, err = os.MkdirTemp("", "exocomp-ansible-")
	} else if err = durable.RemoveTree(home); err == nil {
		err = durable.Mkdir(home)
	}
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, durable.RemoveTree(home)) }()
	ask := func(argv ...string) (out, said []byte, err error) {
		return child.Run(ctx, child.Spec{
			Argv: argv, Env: baseEnv(home, home, searchPath(path, os.Getenv("PATH"))), Dir: home, Limit: limit,
		})
	}
	if python := interpreter(path); python != nil {
		if out, _, err := ask(append(python, "-c", asks)...); err == nil || errors.Is(err, child.ErrLimit) {
			return string(out), err
		}
	}
	out, said, err := ask(path, "--version")
	if line := oneLine(string(said), 300); err != nil && line != "" {
		err = fmt.Errorf("%w: %s", err, line)
	}
	return string(out), err
}

// searchPath returns the PATH of a run: the directory that ansible-playbook is
// in, whose neighbours belong to it, then the daemon's, without entries that
// depend on the working directory.
func searchPath(executable, daemon string) string {
	dirs := []string{filepath.Dir(executable)}
	for _, d := range filepath.SplitList(daemon) {
		if filepath.IsAbs(d) {
			dirs = append(dirs, d)
		}
	}
	if len(dirs) == 1 {
		dirs = append(dirs, "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
	}
	return strings.Join(dirs, string(filepath.ListSeparator))
}
