package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exocomp/exocomp/test/nethost"
)

// gate is a place where a tool stops until the test lets it go on. How often a
// tool came there is counted outside exocomp, on the machine where it stopped.
type gate struct {
	s    *site
	host *nethost.Host // nil: this machine
	path string
}

// gate makes a gate on this machine.
func (s *site) gate(name string) gate {
	return gate{s: s, path: filepath.Join(s.dir, name+".gate")}
}

// hostGate makes a gate on a host.
func (s *site) hostGate(h *nethost.Host, name string) gate {
	return gate{s: s, host: h, path: "/var/tmp/" + name + ".gate"}
}

// line is the shell line that counts itself and stops at the gate.
func (g gate) line() string {
	return fmt.Sprintf("echo x >> %s; while [ ! -e %s.open ]; do sleep 0.2; done", g.path, g.path)
}

// count is the shell line that counts itself and goes on.
func (g gate) count() string { return "echo x >> " + g.path }

// runs returns how often a tool came to the gate.
func (g gate) runs() int {
	g.s.t.Helper()
	if g.host != nil {
		return strings.Count(g.s.fileOn(g.host, g.path), "x")
	}
	data, err := os.ReadFile(g.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		g.s.t.Fatal(err)
	}
	return strings.Count(string(data), "x")
}

// await waits until tools have come to the gate n times.
func (g gate) await(n int) {
	g.s.t.Helper()
	g.s.await(fmt.Sprintf("%d tool(s) at %s", n, g.path), func() bool { return g.runs() >= n })
}

// open lets who stands at the gate, and whoever comes, go on.
func (g gate) open() {
	g.s.t.Helper()
	var err error
	if g.host != nil {
		err = g.host.WriteFile(g.path+".open", nil, 0o644)
	} else {
		err = os.WriteFile(g.path+".open", nil, 0o600)
	}
	if err != nil {
		g.s.t.Fatal(err)
	}
}

// ran fails the test unless tools have come to the gate exactly n times.
func (g gate) ran(n int) {
	g.s.t.Helper()
	if got := g.runs(); got != n {
		g.s.t.Errorf("%s: %d run(s), want %d", g.path, got, n)
	}
}

// resource is a terraform_data whose create runs a shell line and whose id is
// in the state only when that has ended.
func resource(name, line string, after ...string) string {
	return fmt.Sprintf("resource \"terraform_data\" %q {\n  depends_on = [%s]\n  provisioner \"local-exec\" {\n    command = %q\n  }\n}\n",
		name, strings.Join(after, ", "), line)
}

// leaving is a terraform_data whose delete runs a shell line; it exists where
// count is 1.
func leaving(name, line string, count int) string {
	return fmt.Sprintf("resource \"terraform_data\" %q {\n  count = %d\n  provisioner \"local-exec\" {\n    when    = destroy\n    command = %q\n  }\n}\n",
		name, count, line)
}

// infra writes a configuration in HCL with a `hosts` output and registers it
// as a workspace that applies every plan. It returns its directory.
func (s *site) infra(name string, hosts map[string]vars, resources ...string) string {
	s.t.Helper()
	value, err := json.Marshal(hosts)
	if err != nil {
		s.t.Fatal(err)
	}
	text := fmt.Sprintf("%s\noutput \"hosts\" {\n  value = %s\n}\n", strings.Join(resources, "\n"), value)
	dir := filepath.Dir(s.writeFile(filepath.Join("infra", name, "main.tf"), text))
	s.ok("workspace", "add", name, dir, "--approval", "never")
	return dir
}

// thisMachine is an inventory of one local host.
func thisMachine() map[string]vars {
	return map[string]vars{"here": {
		"ansible_connection":         "local",
		"ansible_python_interpreter": "/usr/bin/python3",
	}}
}

// proc is a process as process.json names it.
type proc struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
}

// alive reports whether the process still runs; a zombie does not.
func (p proc) alive() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
	if err != nil {
		return false
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	return fields[0] != "Z" && fields[19] == strconv.FormatUint(p.Start, 10)
}

func (p proc) kill(t *testing.T) {
	t.Helper()
	if !p.alive() {
		return
	}
	if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Fatal(err)
	}
}

// supervised is a running phase: who watches and who works.
type supervised struct {
	Supervisor proc `json:"supervisor"`
	Tool       proc `json:"tool"`
}

// supervised returns the one phase of the site that runs.
func (s *site) supervised() supervised {
	s.t.Helper()
	records, err := filepath.Glob(filepath.Join(s.data(), "control", "*", "*", "process.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	var live []supervised
	for _, path := range records {
		var r supervised
		if err := json.Unmarshal([]byte(s.read(path)), &r); err != nil {
			s.t.Fatal(err)
		}
		if r.Supervisor.alive() {
			live = append(live, r)
		}
	}
	if len(live) != 1 {
		s.t.Fatalf("%d phases run, want one", len(live))
	}
	return live[0]
}

// crash kills the daemon and starts another.
func (s *site) crash(env ...string) {
	s.t.Helper()
	s.daemon.kill()
	s.start(env...)
}

// crashEverything kills daemon, supervisor and tool, and starts another daemon.
func (s *site) crashEverything() {
	s.t.Helper()
	running := s.supervised()
	s.daemon.kill()
	running.Supervisor.kill(s.t)
	running.Tool.kill(s.t)
	s.start()
}

// client is an exocomp command that runs beside the test.
type client struct {
	s      *site
	cmd    *exec.Cmd
	stderr *syncBuffer
	ended  chan result
}

// spawn starts an exocomp command and does not wait for it.
func (s *site) spawn(args ...string) *client {
	s.t.Helper()
	c := &client{s: s, cmd: exec.Command(s.binary, args...), stderr: newSyncBuffer(), ended: make(chan result, 1)}
	stdout := newSyncBuffer()
	c.cmd.Dir = s.dir
	c.cmd.Env = append(os.Environ(), "EXOCOMP_SOCKET="+s.socket())
	c.cmd.Stdout, c.cmd.Stderr = stdout, c.stderr
	if err := c.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = c.cmd.Wait()
		c.ended <- result{args: args, stdout: stdout.String(), stderr: c.stderr.String(), code: c.cmd.ProcessState.ExitCode()}
	}()
	s.t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		<-exited
	})
	return c
}

// wait returns how the command ended. It may be called once.
func (c *client) wait() result {
	c.s.t.Helper()
	select {
	case r := <-c.ended:
		return r
	case <-time.After(patience):
		c.s.t.Fatalf("exocomp %v does not end: %s", c.cmd.Args[1:], c.stderr.String())
		return result{}
	}
}

// assertClean waits for the last directory of the site's jobs to go and fails
// the test if a process of theirs is left. Every job must have ended.
func (s *site) assertClean() {
	s.t.Helper()
	for _, p := range s.jobProcesses() {
		s.t.Errorf("left behind: %s", p)
	}
	for _, p := range s.tokenCarriers() {
		s.t.Errorf("carries an attempt's token: %s", p)
	}
	// the directory goes right after the ledger has the job's end
	s.await("the end of the work directories", func() bool {
		left, err := os.ReadDir(filepath.Join(s.runtime(), "work"))
		return err == nil && len(left) == 0 || errors.Is(err, os.ErrNotExist)
	})
}

// tokenCarriers lists the processes whose environment holds a token of one of
// the site's attempts that left a result.
func (s *site) tokenCarriers() []process {
	s.t.Helper()
	results, err := filepath.Glob(filepath.Join(s.data(), "control", "*", "*", "result.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	tokens := map[string]bool{}
	for _, path := range results {
		var r struct {
			Token string `json:"token"`
		}
		if err := json.Unmarshal([]byte(s.read(path)), &r); err != nil || r.Token == "" {
			s.t.Fatalf("%s: %v", path, err)
		}
		tokens["EXOCOMP_ATTEMPT="+r.Token] = true
	}
	var out []process
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, path := range environs {
		environ, _ := os.ReadFile(path)
		for entry := range strings.SplitSeq(string(environ), "\x00") {
			if tokens[entry] {
				pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
				out = append(out, process{pid, path})
			}
		}
	}
	return out
}
