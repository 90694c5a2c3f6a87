//go:build long

package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// TestLongGateProviderOwner: a workspace has one resource. The second that names it
// is refused and changes nothing, until it is made to take it over.
func TestLongGateProviderOwner(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start()
	first, second := s.root("first"), s.root("second")
	a := attrs{"workspace": "edge", "playbook": s.playbook("site", rawPlay("tf:edge", "true")), "inventory": thisMachine()}
	first.provision(a)
	first.apply()
	before := jsonOf[rpc.InventoryView](s, "inventory", "show", "edge")

	second.provision(a.with(attrs{"inventory": map[string]vars{"other": thisMachine()["here"]}}))
	second.applyFails("workspace edge belongs to another exocomp_provision", "tofu import ADDRESS edge")
	after := jsonOf[rpc.InventoryView](s, "inventory", "show", "edge")
	s.holds(after.Inventory.Digest == before.Inventory.Digest, "the inventory of the first is untouched", after)
	s.holdsRuns("edge", 1, "and nothing was run")
	first.holdsEmpty("of the first")

	// both at once, in one configuration
	both := s.root("both")
	both.provision(a.with(attrs{"workspace": "pair"}), both.block(`resource "exocomp_provision" "twin"`,
		a.with(attrs{"workspace": "pair", "inventory": map[string]vars{"other": thisMachine()["here"]}})))
	both.applyFails("workspace pair belongs to another exocomp_provision")
	s.holdsRuns("pair", 1, "of two in one configuration, one is refused")

	// a name that the daemon has registered is not a resource's to hand over
	s.infra("infra", thisMachine())
	second.provision(a.with(attrs{"workspace": "infra"}))
	second.applyFails("workspace infra is registered", "leave the attribute inventory out")
}

// TestLongGateProviderInsideTheDaemon: the daemon, which has one worker, applies the
// configuration itself. Nothing waits for what waits for it.
func TestLongGateProviderInsideTheDaemon(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.writeFile("exocomp.hcl", s.read(s.config)+"workers = 1\n")
	s.start()
	r := s.root("infra")
	play, leave := s.gate("play"), s.gate("leave")
	a := attrs{
		"workspace": "edge", "playbook": s.playbook("site", rawPlay("tf:edge", play.count())), "inventory": thisMachine(),
		"destroy_playbook": s.playbook("leave", rawPlay("all", leave.count())),
	}
	r.provision(a)
	s.ok("workspace", "add", "infra", r.dir, "--cli-config", s.mirrorConfig(), "--approval", "never")
	apply := func() (orchestrator.Job, string) {
		t.Helper()
		out := s.ok("workspace", "apply", "infra", "--wait")
		jobs := jsonOf[[]orchestrator.Job](s, "jobs", "list", "--workspace", "infra")
		return jobs[0], out.stdout + s.ok("jobs", "logs", string(jobs[0].ID)).stdout
	}

	job, said := apply()
	run := s.awaitRun("edge")
	s.holds(job.State == orchestrator.JobSucceeded && strings.Contains(said, "Run "+string(run.ID)+" goes on after this apply") &&
		strings.Contains(said, "exocomp provision status "+string(run.ID)), "the apply ends, and names the run that it put off", said)
	s.holds(run.State == orchestrator.RunSucceeded && run.Steps[3].StartedAt.After(job.FinishedAt), "the run goes on after it and succeeds", run)
	play.ran(1)
	job, said = apply()
	s.holds(job.State == orchestrator.JobSucceeded && !strings.Contains(said, "goes on after"), "the next apply has nothing to put off", said)
	s.holdsRuns("edge", 1, "and makes no run")

	r.write("main.tf", requireProvider)
	job, said = apply()
	s.holds(job.State == orchestrator.JobSucceeded && len(s.leaves()) == 1 && s.leaves()[0].State == orchestrator.JobSucceeded,
		"the destroy waits for its leave play, with the one worker there is", said, s.leaves())
	leave.ran(1)

	// a chain over the very workspace whose apply asks for it
	r.provision(a.with(attrs{"workspace": "infra", "inventory": nil, "destroy_playbook": nil}))
	out := s.cli("workspace", "apply", "infra", "--wait")
	told := unboxed(out.stdout + s.ok("jobs", "logs", string(jsonOf[[]orchestrator.Job](s, "jobs", "list", "--workspace", "infra")[0].ID)).stdout)
	s.holds(out.code == 1 && strings.Contains(told, "a chain over it would wait for itself") && strings.Contains(told, "set the attribute inventory"),
		"a chain over the workspace that is being applied is refused, with the attribute to use", told)
	s.holdsRuns("infra", 0, "and makes no run")
	r.env = []string{"TF_CLI_CONFIG_FILE=" + filepath.Join(s.dir, "mirror.tofurc")}
	r.applyFails("a chain over it would wait for itself", "set the attribute inventory")
	s.assertClean()
}
