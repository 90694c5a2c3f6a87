package e2e

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// lost returns the creates that the ledger suspects in a workspace.
func (s *site) lost(workspace string) []orchestrator.LostCreate {
	s.t.Helper()
	return jsonOf[orchestrator.Workspace](s, "workspace", "show", workspace).Lost
}

// job returns a job by its id.
func (s *site) job(id string) orchestrator.Job {
	s.t.Helper()
	return jsonOf[orchestrator.Job](s, "jobs", "show", id)
}

// awaitJob waits until a job has ended and returns it.
func (s *site) awaitJob(id string) orchestrator.Job {
	s.t.Helper()
	id = strings.TrimSpace(id)
	s.awaitEvent("the end of job "+id, func(e orchestrator.Event) bool {
		return string(e.Job) == id && (e.Kind == orchestrator.EventJobFinished || e.Kind == orchestrator.EventJobInterrupted)
	})
	return s.job(id)
}

// tofu runs a command of tofu as a person would, in a configuration's directory.
func (s *site) tofu(dir string, args ...string) string {
	s.t.Helper()
	cmd := exec.Command("tofu", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("tofu %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// kinds returns the kinds of the events that args select.
func (s *site) kinds(args ...string) []orchestrator.EventKind {
	s.t.Helper()
	var out []orchestrator.EventKind
	for _, e := range s.events(args...) {
		out = append(out, e.Kind)
	}
	return out
}

// Everything dies while tofu has made one resource and makes another, neither
// saved. The step fails and names both with the way to import them, every path
// to an apply is refused, and once they are in the state the chain goes on
// without having made anything twice.
func TestLostCreatesBarEveryApplyUntilImported(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	made, slow := s.gate("made"), s.gate("slow")
	dir := s.infra("edge", thisMachine(),
		resource("made", made.count()), resource("slow", slow.line(), "terraform_data.made"))
	site := s.playbook("site", rawPlay("tf:edge", "true"))
	run := string(s.submit("edge", site))
	slow.await(1)
	queued := s.ok("workspace", "apply", "edge").stdout
	s.crashEverything()

	ended := s.awaitRun(run)
	failed := ended.FailedStep()
	lost := s.lost("edge")
	if failed == nil || failed.Kind != orchestrator.StepTofuApply || len(lost) != 2 {
		t.Fatalf("failed step %+v, lost %+v", failed, lost)
	}
	for _, l := range lost {
		for _, part := range []string{"import", l.Address, l.ID, dir} {
			if !strings.Contains(failed.Failure.Message, l.Address) || !strings.Contains(failed.Failure.Hint, part) {
				t.Errorf("the failure does not name %s and how to import it (%s): %+v", l.Address, part, failed.Failure)
			}
		}
	}
	i := slices.IndexFunc(lost, func(l orchestrator.LostCreate) bool { return l.Address == "terraform_data.made" })
	if i < 0 || lost[i].ID == "" {
		t.Fatalf("the id that the journal names is not among %+v", lost)
	}
	if j := s.awaitJob(queued); j.State != orchestrator.JobFailed || j.Failure.Code != orchestrator.CodeRefused {
		t.Errorf("the apply that was queued before is %s: %+v", j.State, j.Failure)
	}
	refused := func(parts ...string) {
		t.Helper()
		parts = append(parts, "import", dir, "--accept-lost")
		s.fails(4, parts, "provision", "run", "edge", site)
		s.fails(4, parts, "provision", "resume", run)
		s.fails(4, parts, "workspace", "apply", "edge")
	}
	refused("terraform_data.made", "terraform_data.slow", lost[i].ID)
	s.assertClean()

	s.tofu(dir, "import", "-no-color", "terraform_data.made", lost[i].ID)
	refused("terraform_data.slow")
	s.tofu(dir, "import", "-no-color", "terraform_data.slow", "any-id")
	s.ok("provision", "resume", run, "--wait")

	if again := s.run(run); again.State != orchestrator.RunSucceeded {
		t.Errorf("the resumed run is %s: %+v", again.State, again.FailedStep())
	}
	if left := s.lost("edge"); len(left) != 0 {
		t.Errorf("still suspected: %+v", left)
	}
	if kinds := s.kinds("--workspace", "edge"); !slices.Contains(kinds, orchestrator.EventLostFound) {
		t.Errorf("no event says that the lost creates were found: %v", kinds)
	}
	made.ran(1)
	slow.ran(1)
}
