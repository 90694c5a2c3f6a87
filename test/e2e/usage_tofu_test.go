package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// failsStep1 runs a command whose chain must fail in step 1, with the exit
// code and the parts in the ledger's failure or hint and in what --wait prints.
func (s *site) failsStep1(code int, parts []string, args ...string) {
	s.t.Helper()
	r := s.cli(args...)
	run := s.run("edge")
	f := run.Steps[0].Failure
	if r.code != code || run.State != orchestrator.RunFailed || f == nil {
		s.t.Fatalf("want step 1 to fail with exit code %d: %s", code, r)
	}
	for _, p := range parts {
		s.holds(strings.Contains(f.Message+"\n"+f.Hint, p), "the ledger says "+p, f)
		s.holds(strings.Contains(r.stdout, p), "the command line says "+p, r)
	}
	s.holds(f.Hint != "" && strings.Contains(r.stdout, "  next  "), "and what to type next", f)
	for _, step := range run.Steps[1:] {
		s.holds(step.State == orchestrator.StepBlocked, "later steps stay blocked", step)
	}
}

func TestUsageWithoutTools(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("PATH=/usr/bin:/bin")
	applies := s.gate("apply")
	dir := s.infra("edge", thisMachine(), resource("count", applies.count()))
	play := s.playbook("p", rawPlay("tf:edge", "true"))

	s.failsStep1(1, []string{"tofu is missing", "PATH"}, "provision", "run", "edge", play, "--wait")
	doctor := s.cli("doctor")
	s.holds(doctor.code == 1 && strings.Contains(doctor.stdout, "BAD  tofu"), "doctor names the missing tool", doctor)
	s.stop()

	settings := s.read(s.config)
	s.writeFile("exocomp.hcl", settings+"ansible {\n  path = \"/nonexistent/ansible-playbook\"\n}\n")
	s.start()
	s.failsStep1(1, []string{"ansible is missing", "/nonexistent/ansible-playbook"}, "provision", "resume", "edge", "--wait")
	applies.ran(0)
	_, err := os.Stat(filepath.Join(dir, "terraform.tfstate"))
	s.holds(os.IsNotExist(err), "nothing was applied without Ansible", err)
	s.stop()

	s.writeFile("exocomp.hcl", settings)
	s.start()
	s.ok("provision", "resume", "edge", "--wait")
	applies.ran(1)
}

func TestUsageOfAWorkspaceAtWork(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	g := s.gate("apply")
	dir := s.infra("edge", thisMachine(), resource("slow", g.line()))
	play := s.playbook("p", rawPlay("tf:edge", "true"))
	run := string(s.submit("edge", play))
	g.await(1)

	s.refuses(
		mistake{4, []string{run}, []string{"workspace", "remove", "edge"}},
		mistake{4, []string{run}, []string{"workspace", "unlock", "edge", "0"}},
	)
	second := string(s.submit("edge", play))
	s.holds(s.run(second).State == orchestrator.RunQueued, "a second run queues behind the first")
	s.refuses(mistake{4, []string{run}, []string{"workspace", "remove", "edge"}})
	s.ok("provision", "cancel", second)
	s.holds(s.run(second).State == orchestrator.RunCancelled, "a queued run is cancelled at once")
	g.open()
	s.holds(s.awaitRun(run).State == orchestrator.RunSucceeded, "the first run is not disturbed")

	s.ok("workspace", "remove", "edge")
	s.refuses(mistake{2, []string{`"edge"`}, []string{"workspace", "show", "edge"}})
	s.holds(strings.Contains(s.read(filepath.Join(dir, "terraform.tfstate")), "terraform_data"), "removing a workspace destroys nothing")
	_, err := os.Stat(filepath.Join(s.data(), "artifacts", "inventory", "edge.json"))
	s.holds(os.IsNotExist(err), "its inventory is gone", err)
	s.holds(s.run(run).State == orchestrator.RunSucceeded, "its history stays")
}

// stateServer keeps one state with a lock, as OpenTofu's http backend asks it.
type stateServer struct {
	*httptest.Server
	mu    sync.Mutex
	state []byte
	lock  []byte // the lock's info, or nil
}

func newStateServer(t *testing.T) *stateServer {
	t.Helper()
	b := &stateServer{}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

// ServeHTTP implements [http.Handler].
func (b *stateServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
	case r.Method == "LOCK" && b.lock != nil:
		w.WriteHeader(http.StatusLocked)
		_, _ = w.Write(b.lock)
	case r.Method == "LOCK":
		b.lock = body
	case r.Method == "UNLOCK":
		b.lock = nil
	case r.Method == http.MethodPost:
		b.state = body
	case b.state == nil:
		w.WriteHeader(http.StatusNotFound)
	default:
		_, _ = w.Write(b.state)
	}
}

// TestUsageOfAStateLock: a lock that somebody left is named with its holder,
// never broken unasked, and broken when asked.
func TestUsageOfAStateLock(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	backend := newStateServer(t)
	const id = "5d0b2a3c-0000-4000-8000-00000000c0de"
	backend.lock = fmt.Appendf(nil, `{"ID":%q,"Operation":"OperationTypeApply","Info":"","Who":"ann@laptop","Version":"1.12.6","Created":"2026-01-02T03:04:05Z","Path":""}`, id)
	s.infra("edge", thisMachine(), fmt.Sprintf("terraform {\n  backend \"http\" {\n    address = %q\n    lock_address = %q\n    unlock_address = %q\n  }\n}\n",
		backend.URL, backend.URL, backend.URL))
	play := s.playbook("p", rawPlay("tf:edge", "true"))

	s.failsStep1(1, []string{"ann@laptop", id, "exocomp workspace unlock edge " + id}, "provision", "run", "edge", play, "--wait")
	s.holds(len(backend.lock) > 0, "the lock was not broken unasked")
	s.ok("workspace", "unlock", "edge", id)
	unlocked := s.events("--security", "--workspace", "edge")
	s.holds(len(unlocked) == 1 && unlocked[0].Kind == orchestrator.EventStateUnlocked && strings.Contains(unlocked[0].Message, id), "breaking a lock is a security event", unlocked)
	s.ok("provision", "resume", "edge", "--wait")
	s.holds(strings.Contains(string(backend.state), "here"), "the state is where the backend keeps it")
}
