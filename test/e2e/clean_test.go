package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
