package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/exocomp/exocomp/test/nethost"
	"github.com/exocomp/exocomp/test/nethost/nethosttest"
)

// patience bounds every await of these tests; it only matters when one fails.
const patience = 2 * time.Minute

// site is one scratch installation: a lab of hosts, a data directory, a daemon.
type site struct {
	t      *testing.T
	dir    string
	lab    *nethost.Lab
	binary string
	config string

	mu     sync.Mutex
	daemon *daemonProcess
	env    []string // of the daemon, besides the harness's own
	uid    uint32   // whose daemon it is
}

// newSite makes an installation without a daemon. Everything that it starts
// ends with the test.
func newSite(t *testing.T) *site {
	t.Helper()
	// short: unix sockets below it must stay under 108 bytes
	dir, err := os.MkdirTemp("", "exo")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	s := &site{t: t, dir: dir, binary: testBinary(t), config: filepath.Join(dir, "exocomp.hcl")}
	s.writeFile("exocomp.hcl", fmt.Sprintf("data_dir = %q\nruntime_dir = %q\nlog_level = \"debug\"\n", s.data(), s.runtime()))
	t.Cleanup(func() { s.assertNothingRuns() })
	return s
}

// newLabSite makes an installation with a lab, without hosts yet.
func newLabSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.lab = nethosttest.Lab(t)
	return s
}

func (s *site) data() string    { return filepath.Join(s.dir, "data") }
func (s *site) runtime() string { return filepath.Join(s.dir, "run") }
func (s *site) socket() string  { return filepath.Join(s.runtime(), "exocomp.sock") }

// testBinary returns the executable with fault points that `make build` makes.
func testBinary(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../bin/exocomp-test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run make build first, or make test-e2e", err)
	}
	return path
}

// writeFile writes below the site's directory and returns the path.
func (s *site) writeFile(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// daemonProcess is a running `exocomp serve`.
type daemonProcess struct {
	cmd    *exec.Cmd
	log    *syncBuffer
	exited chan struct{}
	err    error
}

// start starts a daemon and returns once it answers.
func (s *site) start(env ...string) *daemonProcess {
	s.t.Helper()
	d := s.launch(env...)
	select {
	case <-d.log.seen("daemon is ready"):
	case <-d.exited:
		s.t.Fatalf("the daemon ended (%v):\n%s", d.err, d.log.String())
	case <-time.After(patience):
		s.t.Fatalf("the daemon is not ready:\n%s", d.log.String())
	}
	return d
}

// launch starts a daemon and does not wait for it.
func (s *site) launch(env ...string) *daemonProcess {
	s.t.Helper()
	cmd := exec.Command(s.binary, "serve", "--allow-root", "--config", s.config)
	cmd.Env = append(append(os.Environ(), s.env...), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: s.uid, Gid: s.uid}}
	d := &daemonProcess{cmd: cmd, log: newSyncBuffer(), exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = d.log, d.log
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		d.err = cmd.Wait()
		close(d.exited)
	}()
	s.t.Cleanup(func() {
		d.kill()
		if s.t.Failed() {
			s.t.Logf("daemon %d said:\n%s", cmd.Process.Pid, tail(d.log.String(), 200))
		}
	})
	s.mu.Lock()
	s.daemon = d
	s.mu.Unlock()
	return d
}

// kill ends the daemon with SIGKILL and waits for its end.
func (d *daemonProcess) kill() {
	_ = d.cmd.Process.Kill()
	<-d.exited
}

// stop ends the daemon in order.
func (s *site) stop() {
	s.t.Helper()
	_ = s.daemon.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.daemon.exited:
	case <-time.After(patience):
		s.t.Fatalf("the daemon does not end on SIGTERM:\n%s", s.daemon.log.String())
	}
}

// result is how a command ended.
type result struct {
	args           []string
	stdout, stderr string
	code           int
}

func (r result) String() string {
	return fmt.Sprintf("exocomp %s\nexit code %d\nstdout:\n%s\nstderr:\n%s", strings.Join(r.args, " "), r.code, r.stdout, r.stderr)
}

// cli runs an exocomp command against the site's daemon.
func (s *site) cli(args ...string) result {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	return s.cliContext(ctx, args...)
}

func (s *site) cliContext(ctx context.Context, args ...string) result {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, s.binary, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "EXOCOMP_SOCKET="+s.socket())
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	r := result{args: args, stdout: stdout.String(), stderr: stderr.String()}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		r.code = exit.ExitCode()
	case err != nil:
		s.t.Fatalf("exocomp %v: %v", args, err)
	}
	return r
}

// ok runs a command that must succeed.
func (s *site) ok(args ...string) result {
	s.t.Helper()
	r := s.cli(args...)
	if r.code != 0 {
		s.t.Fatalf("want success of %s", r)
	}
	return r
}

// fails runs a command that must end with code and say each part on stderr.
func (s *site) fails(code int, parts []string, args ...string) result {
	s.t.Helper()
	r := s.cli(args...)
	if r.code != code {
		s.t.Fatalf("want exit code %d of %s", code, r)
	}
	for _, p := range parts {
		if !strings.Contains(r.stderr, p) {
			s.t.Errorf("stderr lacks %q: %s", p, r)
		}
	}
	return r
}

// jsonOf runs a command that must succeed and decodes what it prints.
func jsonOf[T any](s *site, args ...string) T {
	s.t.Helper()
	r := s.ok(append(args, "--json")...)
	var v T
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil {
		s.t.Fatalf("%v: %s", err, r)
	}
	return v
}

// assertNothingRuns fails the test if a process that belongs to the site's jobs
// is left: each carries its attempt's token in its environment.
func (s *site) assertNothingRuns() {
	for _, p := range s.jobProcesses() {
		s.t.Errorf("process left behind: %s", p)
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
}

type process struct {
	pid  int
	line string
}

func (p process) String() string { return fmt.Sprintf("%d %s", p.pid, p.line) }

// jobProcesses lists the processes whose environment, command line or log
// points into the site's directories, the daemon excepted.
func (s *site) jobProcesses() []process {
	var out []process
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, dir := range dirs {
		var pid int
		if _, err := fmt.Sscanf(filepath.Base(dir), "%d", &pid); err != nil || pid == os.Getpid() {
			continue
		}
		if s.daemon != nil && pid == s.daemon.cmd.Process.Pid {
			continue
		}
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if bytes.Contains(environ, []byte("EXOCOMP_ATTEMPT=")) && bytes.Contains(environ, []byte(s.dir)) ||
			bytes.Contains(cmdline, []byte(s.dir)) || s.supervises(dir, cmdline) {
			out = append(out, process{pid, strings.ReplaceAll(string(cmdline), "\x00", " ")})
		}
	}
	return out
}

// supervises reports whether the process of a /proc directory is a supervisor
// of the site: its own arguments do not say so, but its log does.
func (s *site) supervises(proc string, cmdline []byte) bool {
	if !bytes.HasPrefix(cmdline, []byte("exocomp\x00")) {
		return false
	}
	log, err := os.Readlink(filepath.Join(proc, "fd", "2"))
	return err == nil && strings.HasPrefix(log, s.dir+"/")
}

// await polls for a condition outside exocomp, where no event can be awaited.
func (s *site) await(what string, ok func() bool) {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			s.t.Fatalf("timed out awaiting %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// syncBuffer collects a process's output and tells when a text was seen.
type syncBuffer struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	waits map[string]chan struct{}
}

func newSyncBuffer() *syncBuffer { return &syncBuffer{waits: map[string]chan struct{}{}} }

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf.Write(p)
	for text, ch := range b.waits {
		if bytes.Contains(b.buf.Bytes(), []byte(text)) {
			close(ch)
			delete(b.waits, text)
		}
	}
	return len(p), nil
}

// seen returns a channel that is closed once text was written.
func (b *syncBuffer) seen(text string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	ch := make(chan struct{})
	if bytes.Contains(b.buf.Bytes(), []byte(text)) {
		close(ch)
		return ch
	}
	b.waits[text] = ch
	return ch
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// tail returns the last n lines of s.
func tail(s string, n int) string {
	var lines []string
	sc := bufio.NewScanner(strings.NewReader(s))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		lines = append(lines, sc.Text())
	}
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}

var _ io.Writer = (*syncBuffer)(nil)
