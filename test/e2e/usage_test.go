package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// mistake is a command line that must be refused with one sentence.
type mistake struct {
	code  int
	parts []string
	args  []string
}

// refuses runs each command line: it must end with its code, say what is wrong
// in one sentence, and below it what to type next.
func (s *site) refuses(mistakes ...mistake) {
	s.t.Helper()
	for _, m := range mistakes {
		s.assertSentence(s.fails(m.code, m.parts, m.args...))
	}
}

// assertSentence holds what a failed command says against the form that people
// can use: a sentence, the next thing to type, nothing of the machinery.
func (s *site) assertSentence(r result) {
	s.t.Helper()
	if !strings.HasPrefix(r.stderr, "exocomp: ") || !strings.Contains(r.stderr, "\n  next: ") {
		s.t.Errorf("want a sentence and the next thing to type from %s", r)
	}
	if r.stdout != "" {
		s.t.Errorf("want nothing on standard output from %s", r)
	}
	for _, machinery := range []string{"rpc error", "panic", "goroutine", "%!", "desc =", "\x1b"} {
		if strings.Contains(r.stderr, machinery) {
			s.t.Errorf("%q in %s", machinery, r)
		}
	}
}

func TestUsageWithoutADaemon(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	play := s.playbook("p", rawPlay("all", "true"))
	s.refuses(
		mistake{3, []string{"no daemon", s.socket(), "exocomp serve"}, []string{"workspace", "list"}},
		mistake{3, []string{"no daemon"}, []string{"provision", "run", "edge", play, "--wait"}},
		mistake{3, []string{"no daemon"}, []string{"jobs", "list", "--json"}},
		mistake{3, []string{"no daemon"}, []string{"drain"}},
		mistake{2, []string{`unknown command "nope"`, "exocomp --help"}, []string{"nope"}},
		mistake{2, []string{`unknown command "nope"`, "exocomp provision --help"}, []string{"provision", "nope"}},
		mistake{2, []string{"unknown flag: --nope", "exocomp provision run --help"}, []string{"provision", "run", "--nope", "edge", play}},
		mistake{2, []string{"exocomp provision run --help"}, []string{"provision", "run", "edge"}},
		mistake{2, []string{"exocomp version --help"}, []string{"version", "extra"}},
		mistake{2, []string{"exocomp provision run --help"}, []string{"provision", "run", "-edge", play}},
		mistake{2, []string{"exocomp provision run --help"}, []string{"provision", "run", "--", "-edge", play}},
		mistake{2, []string{`"-e"`, "starting with a letter"}, []string{"workspace", "add", "--", "-e", s.dir}},
		mistake{2, []string{`"tf"`, "reserved"}, []string{"workspace", "add", "tf", s.dir}},
		mistake{2, []string{`"Localhost"`, "reserved"}, []string{"workspace", "add", "Localhost", s.dir}},
		mistake{2, []string{`"a.b"`, "not allowed"}, []string{"workspace", "add", "a.b", s.dir}},
		mistake{2, []string{"64 bytes"}, []string{"workspace", "add", strings.Repeat("a", 64), s.dir}},
		mistake{2, []string{"perhaps", "destructive"}, []string{"workspace", "add", "edge", s.dir, "--approval", "perhaps"}},
		mistake{2, []string{"job id"}, []string{"jobs", "logs", "job_1"}},
		mistake{2, []string{"job state"}, []string{"jobs", "list", "--state", "bored"}},
		mistake{2, []string{"--wait-timeout"}, []string{"workspace", "apply", "edge", "--wait-timeout", "-1s"}},
		mistake{4, []string{"root", "--allow-root"}, []string{"serve", "--config", s.config}},
		mistake{2, []string{"no such configuration file"}, []string{"serve", "--allow-root", "--config", filepath.Join(s.dir, "none.hcl")}},
	)

	broken := s.writeFile("broken.hcl", "data_dir = \"/nowhere\"\nwrokers = 3\n")
	s.refuses(mistake{2, []string{broken + ":2,1", "wrokers"}, []string{"serve", "--allow-root", "--config", broken}})
	broken = s.writeFile("broken.hcl", "data_dir = \"relative\"\nworkers = 0\n")
	s.refuses(mistake{2, []string{broken, "data_dir", "workers"}, []string{"serve", "--allow-root", "--config", broken}})

	if v := jsonOf[map[string]any](s, "version"); v["version"] == "" || v["contract"] != float64(rpc.ContractVersion) {
		t.Errorf("version --json says %v", v)
	}
	doctor := s.cli("doctor", "--config", s.config)
	if doctor.code != 1 {
		t.Errorf("without a daemon something is wrong: %s", doctor)
	}
	for _, part := range []string{s.data() + " (serve will make it)", "BAD  daemon", "next: start it: exocomp serve", "ok   tofu", "ok   ansible-playbook"} {
		if !strings.Contains(doctor.stdout, part) {
			t.Errorf("doctor lacks %q: %s", part, doctor)
		}
	}
}

func TestUsageOfWorkspacesAndRuns(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	s.workspace("edge", map[string]vars{"here": local})
	play := s.playbook("p", rawPlay("tf:edge", "true"))

	empty := filepath.Join(s.dir, "empty")
	if err := os.Mkdir(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	locked := filepath.Join(s.dir, "locked.pem")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "pass phrase", "-f", locked).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
	run := func(flags ...string) []string { return append([]string{"provision", "run", "edge", play}, flags...) }
	unknown := []string{`there is no workspace "nowhere"`, "exocomp workspace list"}
	s.refuses(
		mistake{2, unknown, []string{"workspace", "show", "nowhere"}},
		mistake{2, unknown, []string{"workspace", "apply", "nowhere"}},
		mistake{2, unknown, []string{"workspace", "refresh", "nowhere", "--wait"}},
		mistake{2, unknown, []string{"workspace", "unlock", "nowhere", "id"}},
		mistake{2, unknown, []string{"workspace", "remove", "nowhere"}},
		mistake{2, unknown, []string{"provision", "run", "nowhere", play}},
		mistake{2, unknown, []string{"provision", "status", "nowhere"}},
		mistake{2, unknown, []string{"provision", "resume", "nowhere"}},
		mistake{2, unknown, []string{"provision", "cancel", "nowhere"}},
		mistake{2, unknown, []string{"provision", "logs", "nowhere"}},
		mistake{2, unknown, []string{"inventory", "show", "tf:nowhere"}},
		mistake{2, []string{"edge/web1"}, []string{"host", "onboard", "edge/web1"}},
		mistake{2, []string{"edge/web1"}, []string{"host", "forget", "edge/web1"}},
		mistake{2, []string{"run id", "exocomp provision list"}, []string{"provision", "status", "run_1"}},
		mistake{2, []string{"job_00000000000000000000000000"}, []string{"jobs", "show", "job_00000000000000000000000000"}},
		mistake{2, []string{"edge"}, []string{"provision", "status", "edge"}}, // no run yet
		mistake{2, []string{"edge"}, []string{"inventory", "show", "edge"}},   // no apply yet

		mistake{2, []string{"no such directory", empty + "/none"}, []string{"workspace", "add", "other", empty + "/none"}},
		mistake{2, []string{"no OpenTofu configuration", "*.tf"}, []string{"workspace", "add", "other", empty}},
		mistake{2, []string{"not a directory", play}, []string{"workspace", "add", "other", play}},
		mistake{2, []string{"--var-file", "none.tfvars"}, []string{"workspace", "add", "edge", "infra/edge", "--var-file", "none.tfvars"}},

		mistake{2, []string{"no playbook at " + filepath.Join(s.dir, "none.yml")}, []string{"provision", "run", "edge", "none.yml"}},
		mistake{2, []string{"none.yml"}, run("--onboard-playbook", "none.yml")},
		mistake{2, []string{"--egress 0"}, run("--egress", "0")},
		mistake{2, []string{"--egress 70000"}, run("--egress", "22,70000")},
		mistake{2, []string{"--egress"}, run("--egress", "ssh")},
		mistake{2, []string{"--ssh-wait"}, run("--ssh-wait", "0s")},
		mistake{2, []string{"--ssh-identity", "none.pem", "daemon's host"}, run("--ssh-identity", "none.pem")},
		mistake{2, []string{locked, "passphrase"}, run("--ssh-identity", locked)},
		mistake{2, []string{play, "private key"}, run("--ssh-identity", play)},
	)
	if runs := jsonOf[[]orchestrator.Run](s, "provision", "list"); len(runs) != 0 {
		t.Errorf("a refused submit left runs behind: %v", runs)
	}
	if jobs := jsonOf[[]orchestrator.Job](s, "jobs", "list"); len(jobs) != 0 {
		t.Errorf("a refused submit left jobs behind: %v", jobs)
	}
	if ws := jsonOf[[]orchestrator.Workspace](s, "workspace", "list"); len(ws) != 1 || len(ws[0].VarFiles) != 0 {
		t.Errorf("a refused workspace was registered: %v", ws)
	}

	doctor := s.ok("doctor", "--json")
	for _, part := range []string{`"daemon"`, `"tofu"`, `"ansible-playbook"`, s.data()} {
		if !strings.Contains(doctor.stdout, part) {
			t.Errorf("doctor lacks %s: %s", part, doctor)
		}
	}
}

// TestUsageOfTokensAndSockets: who may call what, asked as other users.
func TestUsageOfTokensAndSockets(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	s.workspace("edge", map[string]vars{"here": local})
	play := s.playbook("p", rawPlay("tf:edge", "true"))
	reader := filepath.Join(s.runtime(), rpc.ReaderTokenFile)
	operator := filepath.Join(s.runtime(), rpc.OperatorTokenFile)

	wrong := s.writeFile("wrong.token", strings.Repeat("0", 64)+"\n")
	empty := s.writeFile("empty.token", "")
	s.refuses(
		mistake{3, []string{"token"}, []string{"workspace", "list", "--token-file", wrong}},
		mistake{3, []string{empty, "holds no token"}, []string{"workspace", "list", "--token-file", empty}},
		mistake{3, []string{"none.token"}, []string{"workspace", "list", "--token-file", s.dir + "/none.token"}},
		mistake{4, []string{"reader"}, []string{"provision", "run", "edge", play, "--token-file", reader}},
		mistake{4, []string{"reader"}, []string{"workspace", "apply", "edge", "--token-file", reader}},
		mistake{4, []string{"reader"}, []string{"drain", "--token-file", reader}},
		mistake{4, []string{"reader"}, []string{"host", "fleet-key", "--token-file", reader}},
	)
	s.ok("inventory", "list", "--token-file", reader)
	s.ok("provision", "list", "--token-file", reader)
	denied := s.events("--security")
	if len(denied) == 0 || denied[0].Kind != orchestrator.EventCallDenied {
		t.Errorf("denied calls are no security events: %v", denied)
	}

	// Another user first may not reach the socket, then not read a token.
	for _, dir := range []string{s.dir, s.runtime()} {
		if err := os.Chmod(dir, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	binary := s.publicBinary()
	as := func(parts ...string) {
		t.Helper()
		r := s.command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", binary, "workspace", "list")
		if r.code != 3 {
			t.Errorf("want exit code 3 of %s", r)
		}
		for _, p := range parts {
			if !strings.Contains(r.stderr, p) {
				t.Errorf("stderr lacks %q: %s", p, r)
			}
		}
		s.assertSentence(r)
	}
	as(s.socket(), "permission denied", "as root")
	if err := os.Chmod(s.socket(), 0o666); err != nil {
		t.Fatal(err)
	}
	as("token", operator, "permission denied", rpc.TokenFileEnv)
	if err := os.Remove(s.socket()); err != nil {
		t.Fatal(err)
	}
	as("no daemon", s.socket())
}

// publicBinary copies the executable to where every user may run it.
func (s *site) publicBinary() string {
	s.t.Helper()
	path := filepath.Join(s.dir, "exocomp")
	if out, err := exec.Command("install", "-m", "0755", s.binary, path).CombinedOutput(); err != nil {
		s.t.Fatalf("install: %v: %s", err, out)
	}
	return path
}

// command runs any command line in the site's directory with the client's
// environment.
func (s *site) command(name string, args ...string) result {
	s.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "EXOCOMP_SOCKET="+s.socket())
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		s.t.Fatalf("%s: %v", name, err)
	}
	return result{args: append([]string{name}, args...), stdout: stdout.String(), stderr: stderr.String(), code: cmd.ProcessState.ExitCode()}
}

// TestUsageAsAnOrdinaryUser: a daemon of another uid refuses a directory that it
// cannot read or write, naming itself.
func TestUsageAsAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const uid = 65534
	s.uid = uid
	s.binary = s.publicBinary()
	for _, dir := range []string{s.data(), s.runtime()} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	dir := s.writeOutputs("edge", vars{"hosts": map[string]vars{"here": local}})
	for path, mode := range map[string]os.FileMode{
		s.dir: 0o755, s.config: 0o644, filepath.Join(s.dir, "infra"): 0o755,
	} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	s.start()
	add := []string{"workspace", "add", "edge", dir}
	me := fmt.Sprintf("uid %d", uid)
	s.refuses(mistake{2, []string{"cannot read " + dir, me}, add})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s.refuses(mistake{2, []string{"cannot read " + filepath.Join(dir, "main.tf.json"), me}, add})
	if err := os.Chmod(filepath.Join(dir, "main.tf.json"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.refuses(mistake{2, []string{"cannot write " + dir, me}, add})
	if err := os.Chown(dir, uid, uid); err != nil {
		t.Fatal(err)
	}
	s.ok(add...)
}
