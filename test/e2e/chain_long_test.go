//go:build long

package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// TestLongGateQueue: runs of one workspace take turns, in the order of their
// submits. Its only host is local: neither waited for nor onboarded, but played.
func TestLongGateQueue(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	s.workspace("edge", map[string]vars{"here": local})
	play := s.playbook("site", rawPlay("tf:edge", "id -un"))
	ids := []orchestrator.RunID{s.submit("edge", play), s.submit("edge", play), s.submit("edge", play)}
	var runs []orchestrator.Run
	for _, id := range ids {
		runs = append(runs, s.awaitRun(string(id)))
	}
	for i, run := range runs {
		s.holds(slices.Equal(states(run), allSucceeded), fmt.Sprintf("run %d of three that were submitted at once succeeded", i+1), run)
		if i == 0 {
			continue
		}
		s.holds(!run.Steps[0].StartedAt.Before(runs[i-1].FinishedAt),
			fmt.Sprintf("run %d started only when run %d had ended", i+1, i), run.Steps[0].StartedAt, runs[i-1].FinishedAt)
	}
	order := slices.DeleteFunc(s.events("--workspace", "edge"), func(e orchestrator.Event) bool {
		return e.Kind != orchestrator.EventRunFinished && (e.Kind != orchestrator.EventStepReleased || e.Step != orchestrator.StepTofuApply)
	})
	var got, want []string
	for _, e := range order {
		got = append(got, string(e.Kind)+" "+string(e.Run))
	}
	for _, id := range ids {
		want = append(want, string(orchestrator.EventStepReleased)+" "+string(id), string(orchestrator.EventRunFinished)+" "+string(id))
	}
	s.holds(slices.Equal(got, want), "the events tell that the workspace went from run to run, first in, first out", got)

	s.holdsLocal(runs[0], "here")
	s.holds(len(s.pins()) == 0, "nothing is pinned for an inventory of local hosts", s.pins())
	view := jsonOf[rpc.InventoryView](s, "inventory", "show", "edge")
	s.holds(view.Inventory.Path == filepath.Join(s.data(), "artifacts", "inventory", "edge.json"), "local hosts stand in the inventory too", view)
}
