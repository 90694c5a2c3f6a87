package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// daemonize are shell lines that leave a process behind in every way that is
// known: in a session of its own, forked twice, and with an environment that
// does not hold the attempt's token. Each writes its pid to a line of file.
func daemonize(file string) []string {
	keep := fmt.Sprintf("sh -c 'echo $$ >> %s; exec sleep 1000' </dev/null >/dev/null 2>&1 &", file)
	return []string{
		"setsid " + keep,
		"(setsid sh -c \"( " + strings.ReplaceAll(keep, "$$", "\\$\\$") + " )\" &)",
		"env -i PATH=$PATH setsid " + keep,
		fmt.Sprintf("while [ $(wc -l < %s) -lt 3 ]; do sleep 0.05; done", file),
	}
}

// assertGone fails the test if a process whose pid stands in file lives.
func (s *site) assertGone(file string, n int) {
	s.t.Helper()
	pids := strings.Fields(s.read(file))
	if len(pids) != n {
		s.t.Errorf("%d processes were daemonized, want %d", len(pids), n)
	}
	for _, pid := range pids {
		cmdline, err := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
		if err == nil && strings.Contains(string(cmdline), "sleep") {
			s.t.Errorf("process %s outlived its job: %q", pid, cmdline)
		}
	}
}

// What a play daemonizes on a local host ends with its job, be that a success,
// a failure, a cancellation or a crash.
func TestCleanAfterDaemonizingPlays(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	s.infra("edge", thisMachine())
	pids := func(name string) string { return filepath.Join(s.dir, name+".pids") }
	leave := func(name, then string) string {
		return s.playbook("leave", rawPlay("tf:edge", strings.Join(append(daemonize(pids(name)), then), "\n")))
	}

	if _, run := s.provision("edge", leave("failure", "false")); run.State != orchestrator.RunFailed {
		t.Errorf("the failing play's run is %s", run.State)
	}
	s.assertClean()
	s.assertGone(pids("failure"), 3)

	leave("success", "true")
	s.ok("provision", "resume", "edge", "--wait")
	s.assertClean()
	s.assertGone(pids("success"), 3)

	for _, how := range []string{"cancel", "force"} {
		g := s.gate(how)
		run := string(s.submit("edge", leave(how, g.line())))
		g.await(1)
		args := []string{"provision", "cancel", run, "--wait"}
		if how == "force" {
			args = append(args, "--force")
		}
		s.ok(args...)
		s.assertClean()
		s.assertGone(pids(how), 3)
	}

	// without a supervisor only the token, and a cgroup where there is one, tell
	crash := s.gate("crash")
	run := string(s.submit("edge", leave("crash", crash.line())))
	crash.await(1)
	crash.open()
	s.crashEverything()
	s.awaitRun(run)
	s.assertClean()
}

// assertPrivate fails the test if somebody else could read or write a file of
// the daemon or the job, or if one of the named ones is not there.
func (s *site) assertPrivate(names ...string) {
	s.t.Helper()
	seen := map[string]bool{}
	for _, root := range []string{s.data(), s.runtime()} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if os.IsNotExist(err) {
				return nil // a running job's file that is gone
			}
			if err != nil {
				return err
			}
			info, err := d.Info()
			if os.IsNotExist(err) || d.Type()&fs.ModeSymlink != 0 {
				return nil
			}
			if err != nil {
				return err
			}
			seen[d.Name()] = true
			others := info.Mode().Perm() & 0o077
			if d.Name() == "operator.token" || d.Name() == "reader.token" || d.Name() == "exocomp.sock" || path == s.runtime() {
				others &^= 0o070 // a group's
			}
			if others != 0 && !inside(path, filepath.Join(s.runtime(), "work")) {
				s.t.Errorf("%s has mode %s", path, strconv.FormatUint(uint64(info.Mode().Perm()), 8))
			}
			if d.Name() == "work" && info.Mode().Perm() != 0o700 {
				s.t.Errorf("%s, which protects what tools write, has mode %o", path, info.Mode().Perm())
			}
			return nil
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
	for _, name := range names {
		if !seen[name] {
			s.t.Errorf("there is no %s", name)
		}
	}
}

func inside(path, dir string) bool { return strings.HasPrefix(path, dir+"/") }
