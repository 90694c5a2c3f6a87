package provider

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/config"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

const address = "exocomp_provision.this"

// acceptance is one daemon, one playbook with a role, and steps of tofu.
type acceptance struct {
	t      *testing.T
	daemon *fakeDaemon
	dir    string // of the playbook
}

func newAcceptance(t *testing.T) *acceptance {
	t.Helper()
	a := &acceptance{t: t, daemon: newFakeDaemon(t), dir: t.TempDir()}
	a.write("site.yml", "- hosts: all\n  roles: [web]\n")
	a.write("roles/web/tasks/main.yml", "- ansible.builtin.ping:\n")
	return a
}

// write makes a file beside the playbook.
func (a *acceptance) write(name, content string) {
	a.t.Helper()
	path := filepath.Join(a.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		a.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// vars are the variables of testdata/provision.tf, with what a step changes.
func (a *acceptance) vars(change config.Variables) config.Variables {
	v := config.Variables{
		"socket":     config.StringVariable(a.daemon.server.Socket),
		"token_file": config.StringVariable(a.daemon.server.TokenFile(rpc.RoleOperator)),
		"playbook":   config.StringVariable(filepath.Join(a.dir, "site.yml")),
	}
	for name, value := range change {
		v[name] = value
	}
	return v
}

// step is a step with testdata/provision.tf.
func (a *acceptance) step(change config.Variables, s resource.TestStep) resource.TestStep {
	s.ConfigFile = config.StaticFile("testdata/provision.tf")
	s.ConfigVariables = a.vars(change)
	s.ProtoV6ProviderFactories = map[string]func() (tfprotov6.ProviderServer, error){
		"exocomp": func() (tfprotov6.ProviderServer, error) {
			return newServer(&exocompProvider{version: "test", patience: 50 * time.Millisecond}), nil
		},
	}
	return s
}

// empty expects the plan to have nothing to do.
func (a *acceptance) empty(change config.Variables, before func()) resource.TestStep {
	return a.step(change, resource.TestStep{
		PreConfig: before,
		ConfigPlanChecks: resource.ConfigPlanChecks{
			PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
		},
	})
}

// does expects the plan to have one action, and the state to say "succeeded"
// after it.
func (a *acceptance) does(action plancheck.ResourceActionType, change config.Variables, before func()) resource.TestStep {
	return a.step(change, resource.TestStep{
		PreConfig: before,
		ConfigPlanChecks: resource.ConfigPlanChecks{
			PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, action)},
			PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
		},
		ConfigStateChecks: []statecheck.StateCheck{stateIs("status", "succeeded")},
	})
}

func stateIs(attribute, value string) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(address, tfjsonpath.New(attribute), knownvalue.StringExact(value))
}

// fails expects an error that says all of what is given, in that order.
func (a *acceptance) fails(change config.Variables, before func(), says string) resource.TestStep {
	return a.step(change, resource.TestStep{PreConfig: before, ExpectError: regexp.MustCompile(says)})
}

func (a *acceptance) run(steps ...resource.TestStep) {
	a.t.Helper()
	resource.UnitTest(a.t, resource.TestCase{Steps: steps})
}

// runs expects how often each run was started or resumed.
func (a *acceptance) runs(want ...int) {
	a.t.Helper()
	if got := a.daemon.times(); !slices.Equal(got, want) {
		a.t.Errorf("runs were started or resumed %v times, want %v", got, want)
	}
}

func TestApplyProvisionsAndTheNextPlanIsEmpty(t *testing.T) {
	t.Parallel()
	a := newAcceptance(t)
	host := func(address string, port int64) knownvalue.Check {
		return knownvalue.ObjectExact(map[string]knownvalue.Check{
			"address": knownvalue.StringExact(address), "port": knownvalue.Int64Exact(port), "state": knownvalue.StringExact("ok"),
		})
	}
	first := a.does(plancheck.ResourceActionCreate, nil, nil)
	first.ConfigStateChecks = append(first.ConfigStateChecks,
		stateIs("id", "edge"), stateIs("run_id", digits(1)),
		statecheck.ExpectKnownValue(address, tfjsonpath.New("hosts"), knownvalue.MapExact(map[string]knownvalue.Check{
			"web1": host("192.0.2.11", 22), "web2": host("192.0.2.12", 2222),
		})),
		statecheck.ExpectKnownValue(address, tfjsonpath.New("steps").AtSliceIndex(3).AtMapKey("kind"), knownvalue.StringExact("ansible-play")),
	)
	a.run(
		first,
		a.empty(nil, func() { // touched, and a state beside it
			later := time.Now().Add(time.Hour)
			if err := os.Chtimes(filepath.Join(a.dir, "site.yml"), later, later); err != nil {
				t.Error(err)
			}
			a.write("terraform.tfstate", "{}")
		}),
		a.empty(nil, func() { // an unrelated run that a person started
			a.daemon.set(func() {
				r := a.daemon.add("edge", orchestrator.RunSpec{})
				r.State = orchestrator.RunFailed
			})
		}),
		a.empty(nil, func() { a.daemon.server.Stop(); a.daemon.server.Start() }),
		a.empty(config.Variables{"ssh_wait": config.StringVariable("300s")}, nil),
	)
	a.runs(1, 1)
	if got := a.daemon.lastAsked(); string(got.Inventory.Hosts) !=
		`{"web1":{"ansible_host":"192.0.2.11","ansible_user":"root"},"web2":{"ansible_host":"192.0.2.12","ansible_port":2222}}` {
		t.Errorf("handed over %s", got.Inventory.Hosts)
	}
}

func TestAnotherWorkspaceNameReplaces(t *testing.T) {
	t.Parallel()
	a := newAcceptance(t)
	a.run(
		a.does(plancheck.ResourceActionCreate, nil, nil),
		a.does(plancheck.ResourceActionReplace, config.Variables{"workspace": config.StringVariable("core")}, nil),
	)
	if len(a.daemon.ends) != 2 || a.daemon.ends[0].Workspace != "edge" {
		t.Errorf("ended %+v", a.daemon.ends)
	}
}

func TestAFailedCreateIsResumedByTheNext(t *testing.T) {
	t.Parallel()
	const says = `(?s)run_0{25}1.*failed.*step 4, ansible-play.*1 of 2 hosts failed.*task\s+"install\s+nginx".*` +
		`host web1: failed: no\s+package\s+nginx.*fatal: \[web1\].*exocomp\s+provision\s+logs\s+run_0{25}1.*correct\s+site.yml.*tainted.*tofu\s+untaint\s+ADDRESS`
	a := newAcceptance(t)
	a.run(
		a.fails(nil, func() { a.daemon.set(func() { a.daemon.failAt = orchestrator.StepAnsiblePlay }) }, says),
		a.does(plancheck.ResourceActionReplace, nil, func() {
			a.write("site.yml", "- hosts: all # mended\n")
			a.daemon.set(func() { a.daemon.failAt = "" })
		}),
	)
	a.runs(2)
	if e := a.daemon.ends[0]; !e.Owner.IsZero() || e.Run == "" {
		t.Errorf("the tainted resource ended by %+v, want its run, since OpenTofu drops its token", e)
	}
}
