package provider

import (
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// updates applies, which must change the resource in place and do nothing else.
func (s *site) updates(args ...string) {
	s.t.Helper()
	s.says(s.apply(args...), "0 added, 1 changed, 0 destroyed")
}

func TestEachInputIsAnUpdateInPlaceWithARunOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newSite(t, edge())
	s.write("play/roles/web/tasks/main.yml", "- ansible.builtin.ping:\n")
	s.write("onboard/ansible.cfg", "")
	s.write("onboard/site.yml", "- hosts: all\n")
	s.apply()
	s.write("play/site.yml", "- hosts: all\n  become: true\n")
	s.updates()
	s.write("play/roles/web/tasks/main.yml", "[]\n")
	s.updates()
	more := []string{}
	for _, input := range []string{
		`  vars = { ports = [80, 0.1], tls = true, third = 1 / 3, nested = { a = "<{{ b }}>", none = null } }`,
		`  triggers = { image = "1" }`,
		`  secrets_wo_version = "2"`,
		`  onboard_playbook = abspath("onboard/site.yml")`,
	} {
		more = append(more, input)
		s.write("main.tf", edge(more...))
		s.updates()
	}
	s.write("main.tf", strings.Replace(edge(more...), `{ web1 = { ansible_host = "192.0.2.11" } }`,
		`{ all = { hosts = { web1 = { ansible_host = "192.0.2.11", weight = 0.1 } } } }`, 1))
	s.updates()
	s.plan(false) // with all of them
	s.runs(1, 1, 1, 1, 1, 1, 1, 1)
	got := s.daemon.lastAsked()
	if want := `{"nested":{"a":"<{{ b }}>","none":null},"ports":[80,0.1],"third":0.33333`; !strings.HasPrefix(string(got.Spec.Vars), want) {
		t.Errorf("vars %s, want %s", got.Spec.Vars, want)
	}
	if want := `{"all":{"hosts":{"web1":{"ansible_host":"192.0.2.11","weight":0.1}}}}`; string(got.Inventory.Tree) != want {
		t.Errorf("tree %s, want %s", got.Inventory.Tree, want)
	}
	if got.Spec.Revision == "" || got.Spec.OnboardPlaybook == nil {
		t.Errorf("asked for %+v", got.Spec)
	}
}

func TestAFailedUpdateIsResumedByTheNext(t *testing.T) {
	t.Parallel()
	s := newSite(t, edge())
	s.apply()
	s.write("main.tf", edge(`  triggers = { n = "2" }`))
	s.daemon.set(func() { s.daemon.failAt = orchestrator.StepAnsiblePlay })
	s.fails(applyArgs, digits(2), "step 4")
	s.fails(applyArgs, digits(2), "step 4") // the failure itself is what is to be done
	s.write("play/site.yml", "- hosts: all # mended\n")
	s.daemon.set(func() { s.daemon.failAt = "" })
	s.updates()
	s.plan(false)
	s.runs(1, 3)
}

func TestATimeoutLeavesTheRunToTheNextApply(t *testing.T) {
	t.Parallel()
	s := newSite(t, edge(`  timeouts = { create = "1s" }`))
	s.hold(true)
	s.fails(applyArgs, "Run "+digits(1)+" did not end within 1s", "The run goes on", "timeouts = { create")
	s.hold(false)
	s.says(s.apply(), "1 added, 0 changed, 1 destroyed")
	s.plan(false)
	s.runs(1)
}

func TestTheDaemonMayBeAwayButForApply(t *testing.T) {
	t.Parallel()
	s := newSite(t, edge())
	s.apply()
	s.daemon.server.Stop()
	s.says(s.plan(false), "could not be refreshed")
	s.write("main.tf", edge(`  triggers = { n = "2" }`))
	s.fails(applyArgs, "could not be provisioned")
	code, out := s.tofu("destroy", "-auto-approve", "-no-color") // without a leave play
	if code != 0 || len(s.daemon.ends) != 0 {
		t.Errorf("exit code %d, ended %+v\n%s", code, s.daemon.ends, out)
	}
	s.says(out, "Workspace edge is only forgotten")
}

func TestAnUnknownRunIsNoReasonToCreateAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, edge())
	s.apply()
	s.daemon.set(func() { s.daemon.runs = nil })
	s.says(s.plan(false), "The daemon does not know run "+digits(1))
}

func TestTheLeavePlayRunsAtDestroy(t *testing.T) {
	t.Parallel()
	s := newSite(t, edge(`  destroy_playbook = abspath("leave/leave.yml")`, `  vars = { zone = "a" }`))
	s.write("leave/ansible.cfg", "")
	s.write("leave/leave.yml", "- hosts: all\n")
	s.apply()
	destroy := []string{"destroy", "-auto-approve"}
	s.daemon.set(func() { s.daemon.leaves = orchestrator.Errorf(orchestrator.CodeFailed, "host web1 is unreachable") })
	s.fails(destroy, "The leave play of workspace edge failed", "host web1 is unreachable", "exocomp jobs logs job_00000000000000000000000002")
	s.daemon.server.Stop()
	s.fails(destroy, "The leave play needs the daemon")
	s.daemon.server.Start()
	s.daemon.set(func() { s.daemon.leaves = nil })
	if code, out := s.tofu("destroy", "-auto-approve", "-no-color"); code != 0 {
		t.Error(out)
	}
	if n := len(s.daemon.ends); n != 2 {
		t.Fatalf("asked %d times, want 2", n)
	}
	if l := s.daemon.ends[1].Leave; l == nil || l.Playbook.Entry != "leave.yml" || string(l.Vars) != `{"zone":"a"}` {
		t.Errorf("left with %+v", l)
	}
}
