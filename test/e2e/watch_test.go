package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// TestGateWatch: a watched workspace is applied when its configuration changes,
// and by no change is anything destroyed.
func TestGateWatch(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	dir := s.infra("edge", thisMachine())
	s.ok("workspace", "apply", "edge", "--wait")
	s.ok("workspace", "add", "edge", dir, "--watch")
	s.holds(strings.Contains(s.ok("workspace", "show", "edge").stdout, "yes, applied when its configuration changes"), "workspace show says that it is watched")

	hosts := "output \"hosts\" {\n  value = { here = { ansible_connection = \"local\" }, more = { ansible_connection = \"local\" } }\n}\n"
	s.writeFile("infra/edge/main.tf", leaving("made", "true", 1)+hosts)
	first := s.awaitWatched("")
	s.holds(first.State == orchestrator.JobSucceeded && first.Spec.Watched, "a saved file is applied", first)
	s.holds(strings.Contains(s.ok("inventory", "show", "edge").stdout, "more"), "the inventory names the host that it adds")

	// While no daemon runs, the file of a module comes in.
	s.stop()
	s.writeFile("infra/edge/sub/sub.tf", leaving("inner", "true", 1))
	s.writeFile("infra/edge/main.tf", "module \"sub\" {\n  source = \"./sub\"\n}\n"+leaving("made", "true", 1)+hosts)
	s.start()
	second := s.awaitWatched(first.ID)
	s.holds(second.State == orchestrator.JobSucceeded, "so is what was saved while no daemon ran", second)

	s.writeFile("infra/edge/main.tf", "module \"sub\" {\n  source = \"./sub\"\n}\n"+leaving("made", "true", 1))
	half := s.awaitWatched(second.ID)
	s.holds(half.State == orchestrator.JobFailed && strings.Contains(half.Failure.Message, "2 host(s) would leave tf:edge") &&
		strings.Contains(s.ok("inventory", "show", "edge").stdout, "more"), "hosts leave for no checkout that is half done", half)

	// Policy never applies every plan that a person asks for.
	s.writeFile("infra/edge/sub/sub.tf", leaving("inner", "true", 0))
	third := s.awaitWatched(half.ID)
	s.holds(third.State == orchestrator.JobFailed && third.Failure.Code == orchestrator.CodeRefused &&
		strings.Contains(third.Failure.Message, "delete module.sub.terraform_data.inner[0]") &&
		strings.Contains(third.Failure.Hint, "exocomp workspace apply edge"),
		"a change of a local module whose plan destroys is refused, naming what and the command that does it", third)
	state, err := os.ReadFile(filepath.Join(dir, "terraform.tfstate"))
	s.holds(err == nil && strings.Contains(string(state), "inner"), "nothing was destroyed", err)
	s.ok("workspace", "apply", "edge", "--wait")
	s.holds(!strings.Contains(s.ok("inventory", "show", "edge").stdout, "more"), "a person's apply does both")
}

// awaitWatched waits for the end of the watched apply after the one given.
func (s *site) awaitWatched(after orchestrator.JobID) orchestrator.Job {
	s.t.Helper()
	e := s.awaitEvent("an apply of the changed configuration", func(e orchestrator.Event) bool {
		return e.Kind == orchestrator.EventJobFinished && e.Job > after && s.job(string(e.Job)).Spec.Watched
	}, "--workspace", "edge")
	return s.job(string(e.Job))
}
