package provider

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

const canary = "canary-7f3a91"

// TestSecretsAreWrittenNowhere looks for the value in all that tofu and the
// provider write, with the most talkative log.
func TestSecretsAreWrittenNowhere(t *testing.T) {
	t.Parallel()
	s := newSite(t,
		`variable "password" {`, `  type = string`, `  ephemeral = true`, `}`,
		edge(`  secrets_wo = { DB_PASSWORD = var.password }`, `  secrets_wo_version = "1"`))
	s.process = true
	log := filepath.Join(s.dir, "trace.log")
	s.env = append(s.env, "TF_LOG=TRACE", "TF_LOG_PATH="+log, "TF_VAR_password="+canary)
	out := s.plan(true, "-out=saved")
	code, shown := s.tofu("show", "-json", "saved")
	if code != 0 {
		t.Fatal(shown)
	}
	out += shown + s.apply("saved") + s.plan(false)
	s.daemon.set(func() { s.daemon.failAt = orchestrator.StepAnsiblePlay })
	s.write("play/site.yml", "- hosts: all # changed\n")
	out += s.fails(applyArgs, "step 4")
	_, shown = s.tofu("show", "-json")
	out += shown

	if got := s.daemon.lastAsked().Env["DB_PASSWORD"].Reveal(); got != canary {
		t.Errorf("the daemon got %q", got)
	}
	for what, text := range map[string]string{
		"output": out, "saved plan": s.read("saved"), "state": s.read("terraform.tfstate"),
		"the state before": s.read("terraform.tfstate.backup"), "log": s.read("trace.log"),
	} {
		if strings.Contains(text, canary) {
			t.Errorf("%s holds the secret", what)
		}
	}
	if len(s.read("trace.log")) < 1000 {
		t.Error("there was no log to look into")
	}
}

func TestTheVersionOfTheSecretsIsWhatChanges(t *testing.T) {
	t.Parallel()
	secret := func(value, version string) string {
		return edge(fmt.Sprintf(`  secrets_wo = { DB_PASSWORD = %q }`, value), fmt.Sprintf(`  secrets_wo_version = %q`, version))
	}
	s := newSite(t, secret("a", "1"))
	s.apply()
	s.write("main.tf", secret("b", "1"))
	s.plan(false)
	s.write("main.tf", secret("b", "2"))
	s.apply()
	s.runs(1, 1)
	if got := s.daemon.lastAsked().Env["DB_PASSWORD"].Reveal(); got != "b" {
		t.Errorf("the daemon got %q", got)
	}
}

// TestMistakesAreFoundWithTheirPlace puts each mistake into a resource of its own,
// and asks once.
func TestMistakesAreFoundWithTheirPlace(t *testing.T) {
	t.Parallel()
	blocks := []string{`resource "terraform_data" "later" { input = "x" }`}
	base := []string{`  workspace = "edge"`, `  playbook = abspath("play/site.yml")`, `  inventory = { web1 = { ansible_host = "192.0.2.11" } }`}
	says := map[string][]string{}
	for name, test := range map[string]struct {
		lines string
		says  []string
	}{
		"secret in the inventory": {
			`inventory = { web1 = { ansible_host = "192.0.2.1", ansible_become_password = "x" } }`,
			[]string{`inventory["web1"]["ansible_become_password"] is named like a secret`, "secrets_wo"},
		},
		"secret that is unknown": {
			`inventory = { web1 = { ansible_host = "192.0.2.1", app = [{ api_token = terraform_data.later.output }] } }`,
			[]string{`inventory["web1"]["app"][0]["api_token"] is named like a secret`},
		},
		"secret in a tree": {
			`inventory = { all = { vars = { db_password = "x" }, hosts = { web1 = {} } } }`,
			[]string{`inventory["all"]["vars"]["db_password"]`},
		},
		"secret in the variables": {
			`vars = { db = { passphrase = terraform_data.later.output } }`,
			[]string{`vars["db"]["passphrase"] is named like a secret`},
		},
		"variable of exocomp's own": {`vars = { exocomp_user = "x" }`, []string{"Invalid variables", "exocomp_user"}},
		"variables that are a list": {`vars = ["a"]`, []string{"Invalid variables", "no JSON object"}},
		"host without an address": {
			`inventory = { web1 = { ansible_host = "" } }`,
			[]string{"Invalid inventory", "inventory.web1.ansible_host", "is empty"},
		},
		"key file that nobody granted": {
			`inventory = { web1 = { ansible_host = "192.0.2.1", ansible_ssh_private_key_file = "/k" } }`,
			[]string{"Invalid inventory", "ssh_identities"},
		},
		"no hosts":               {`inventory = {}`, []string{"names no hosts"}},
		"inventory that is text": {`inventory = "x"`, []string{"must be an inventory tree or a map"}},
		"environment name":       {`secrets_wo = { PATH = "x" }`, []string{"would change how programs work"}},
		"wait":                   {`ssh_wait = "5 minutes"`, []string{"is no duration above 0s"}},
		"relative key file":      {`ssh_identities = ["id_ed25519"]`, []string{"is no absolute path"}},
		"home":                   {`onboard_playbook = "~/onboard.yml"`, []string{"~ is not expanded", "pathexpand"}},
		"workspace":              {`workspace = "all"`, []string{"Invalid value"}},
	} {
		label := strings.NewReplacer(" ", "_", "'", "").Replace(name)
		blocks = append(blocks, fmt.Sprintf(`resource "exocomp_provision" %q {`, label))
		set, _, _ := strings.Cut(test.lines, " ")
		for _, l := range base {
			if !strings.HasPrefix(strings.TrimSpace(l), set+" ") {
				blocks = append(blocks, l)
			}
		}
		blocks = append(blocks, "  "+test.lines, "}")
		says["exocomp_provision."+label] = test.says
	}
	s := newSite(t, blocks...)
	_, out := s.tofu("validate", "-json")
	var found struct {
		Diagnostics []struct{ Summary, Detail, Address string }
	}
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatal(err, out)
	}
	said := map[string]string{}
	for _, d := range found.Diagnostics {
		said[d.Address] += d.Summary + " " + flat(d.Detail) + "\n"
	}
	for address, parts := range says {
		t.Run(address, func(t *testing.T) {
			for _, part := range parts {
				if !strings.Contains(said[address], part) {
					t.Errorf("it does not say %q: %q", part, said[address])
				}
			}
		})
	}
	s.runs()
}

// TestAPlaybookThatIsADirectoryFailsThePlan holds that files are looked at by the
// plan, where they may still be written.
func TestAPlaybookThatIsADirectoryFailsThePlan(t *testing.T) {
	t.Parallel()
	s := newSite(t, edge(`  onboard_playbook = abspath("play")`))
	s.fails([]string{"plan"}, "is a directory")
	s.runs()
}

func TestNamesOfHostsAndFlagsAreNoSecrets(t *testing.T) {
	t.Parallel()
	s := newSite(t, lines(
		`resource "exocomp_provision" "this" {`,
		`  workspace = "edge"`,
		`  playbook = abspath("play/site.yml")`,
		`  ssh_identities = ["/etc/exocomp/id_ed25519"]`,
		`  vars = { password_authentication = false }`,
		`  inventory = {`,
		`    "vault-secrets" = { hosts = { token = { ansible_host = "192.0.2.1", ansible_ssh_private_key_file = "/etc/exocomp/id_ed25519" } } }`,
		`    credentials = { children = { passwords = {} } }`,
		`    passwords = { vars = { colour = "red" } }`,
		`  }`,
		`}`))
	s.apply()
	s.plan(false)
}

func TestAddressesThatAreKnownAfterApply(t *testing.T) {
	t.Parallel()
	s := newSite(t, lines(
		`variable "machines" {`, `  type = map(number)`, `  default = { web1 = 11, web2 = 12 }`, `}`,
		`resource "terraform_data" "machine" {`,
		`  for_each = var.machines`,
		`  input = "192.0.2.${each.value}"`,
		`}`,
		`resource "exocomp_provision" "this" {`,
		`  workspace = "edge"`,
		`  playbook = abspath("play/site.yml")`,
		`  inventory = { for name, m in terraform_data.machine : name => {`,
		`    ansible_host = m.output, ansible_port = 22, weight = 1.5, big = 12345678901234567890123, labels = ["a", { b = null }]`,
		`  } }`,
		`}`))
	s.says(s.plan(true), "(known after apply)")
	s.apply()
	s.plan(false)
	one := `{"ansible_host":"192.0.2.%d","ansible_port":22,"big":12345678901234567890123,"labels":["a",{"b":null}],"weight":1.5}`
	if got, want := string(s.daemon.lastAsked().Inventory.Hosts), `{"web1":`+fmt.Sprintf(one, 11)+`,"web2":`+fmt.Sprintf(one, 12)+`}`; got != want {
		t.Errorf("handed over %s\nwant        %s", got, want)
	}
	s.apply(`-var=machines={"web1":11,"web2":12,"web3":13}`)
	s.runs(1, 1)
}

// TestAHostThatIsWrongOnlyAtApply holds that what is unknown at plan is looked at
// when it is known.
func TestAHostThatIsWrongOnlyAtApply(t *testing.T) {
	t.Parallel()
	s := newSite(t, lines(
		`resource "terraform_data" "machine" { input = "" }`,
		`resource "exocomp_provision" "this" {`,
		`  workspace = "edge"`,
		`  playbook = abspath("play/site.yml")`,
		`  inventory = { web1 = { ansible_host = terraform_data.machine.output } }`,
		`}`))
	s.plan(true)
	s.fails(applyArgs, "Invalid inventory", "is empty")
	s.runs()
}

func TestAPlaybookThatTheConfigurationWrites(t *testing.T) {
	t.Parallel()
	s := newSite(t, lines(
		`resource "terraform_data" "playbook" {`,
		`  input = "made/site.yml"`,
		`  provisioner "local-exec" { command = "mkdir -p made && echo '- hosts: all' > made/site.yml" }`,
		`}`,
		`resource "exocomp_provision" "this" {`,
		`  workspace = "edge"`,
		`  playbook = abspath("made/site.yml")`,
		`  inventory = { web1 = { ansible_host = "192.0.2.11" } }`,
		`  depends_on = [terraform_data.playbook]`,
		`}`))
	s.apply()
	s.plan(false)
	if err := os.RemoveAll(filepath.Join(s.dir, "made")); err != nil {
		t.Fatal(err)
	}
	s.fails([]string{"plan"}, "The playbook cannot be read", filepath.Join(s.dir, "made", "site.yml"))
	s.runs(1)
}

func TestASavedPlanTakesThePlaybookAsItIsAtApply(t *testing.T) {
	t.Parallel()
	s := newSite(t, edge())
	s.apply()
	s.write("play/site.yml", "- hosts: all # planned\n")
	s.plan(true, "-out=saved")
	s.write("play/site.yml", "- hosts: all # edited\n")
	s.apply("saved")
	s.plan(false)
	s.write("play/site.yml", "- hosts: all # planned again\n")
	s.plan(true, "-out=saved")
	s.write("play/site.yml", "- hosts: all # edited\n") // back to what was applied
	s.apply("saved")
	s.runs(1, 1)
}

func TestASecondResourceOfTheWorkspaceIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, edge())
	s.apply()
	s.write("second.tf", strings.NewReplacer(`"this"`, `"second"`, "192.0.2.11", "192.0.2.99").Replace(edge()))
	s.fails(applyArgs, "another resource's", "tofu import")
	if err := os.Remove(filepath.Join(s.dir, "second.tf")); err != nil {
		t.Fatal(err)
	}
	s.plan(false)
	s.runs(1)
}

func TestTheRegisteredWorkspaceIsAppliedWithoutAnInventory(t *testing.T) {
	t.Parallel()
	s := newSite(t, lines(`resource "exocomp_provision" "this" {`, `  workspace = "edge"`, `  playbook = abspath("play/site.yml")`, `}`))
	s.apply()
	s.plan(false)
	if s.daemon.lastAsked().Inventory != nil {
		t.Error("an inventory was handed over")
	}
}

func TestAnImportRecordsWithoutARun(t *testing.T) {
	t.Parallel()
	s := newSite(t, edge())
	s.fails([]string{"import", address, "edge"}, "cannot be imported")
	s.apply()
	if err := os.Remove(filepath.Join(s.dir, "terraform.tfstate")); err != nil {
		t.Fatal(err)
	}
	if code, out := s.tofu("import", "-no-color", address, "edge"); code != 0 {
		t.Fatal(out)
	}
	s.says(s.plan(true), "will be updated in-place")
	s.apply()
	s.plan(false)
	s.runs(1)
	if asked := s.daemon.lastAsked(); !asked.Claim || asked.Owner == s.daemon.asked[0].Owner {
		t.Error("the workspace was not claimed with a token of its own")
	}
	s.write("play/site.yml", "- hosts: all # changed\n")
	s.apply()
	if s.daemon.lastAsked().Claim {
		t.Error("the workspace was claimed a second time")
	}
	s.runs(1, 1)
}

func TestAnImportThatWasNeverAppliedIsOnlyForgotten(t *testing.T) {
	t.Parallel()
	s := newSite(t, edge())
	s.daemon.set(func() { s.daemon.finish(s.daemon.add("edge", orchestrator.RunSpec{})) })
	if code, out := s.tofu("import", "-no-color", address, "edge"); code != 0 {
		t.Fatal(out)
	}
	code, out := s.tofu("destroy", "-auto-approve", "-no-color")
	if code != 0 || len(s.daemon.ends) != 0 {
		t.Errorf("exit code %d, ended %v", code, s.daemon.ends)
	}
	s.says(out, "Workspace edge is only forgotten")
}

func TestAResourceWhoseWorkspaceAnotherClaimedIsForgotten(t *testing.T) {
	t.Parallel()
	s := newSite(t, edge())
	s.apply()
	s.daemon.set(func() { s.daemon.owners["edge"].token = "somebody else's token" })
	code, out := s.tofu("destroy", "-auto-approve", "-no-color")
	if code != 0 {
		t.Fatal(out)
	}
	s.says(out, "is not this resource's")
}

func TestAPostconditionOnTheStatus(t *testing.T) {
	t.Parallel()
	s := newSite(t, edge(`  lifecycle {`, `    postcondition {`,
		`      condition     = self.status == "succeeded"`, `      error_message = "not provisioned yet"`, `    }`, `  }`))
	s.daemon.set(func() { s.daemon.deferred, s.daemon.held = true, true })
	s.fails(applyArgs, "not provisioned yet")
	s.daemon.set(func() { s.daemon.deferred, s.daemon.held = false, false })
	s.apply()
	s.plan(false)
}

func TestFleetKey(t *testing.T) {
	t.Parallel()
	s := newSite(t, `data "exocomp_fleet_key" "this" {}`, `output "key" { value = data.exocomp_fleet_key.this.public_key }`)
	s.apply()
	if _, out := s.tofu("output", "-raw", "key"); out != s.daemon.FleetKey {
		t.Errorf("the key is %q", out)
	}
	s.daemon.server.Stop()
	s.fails([]string{"plan"}, "The fleet key cannot be read")
}

func TestTheSettingsOfTheProviderComeFirst(t *testing.T) {
	t.Parallel()
	s := newSite(t, edge())
	s.process = true
	s.env = append(s.env, "EXOCOMP_SOCKET=/nowhere", "EXOCOMP_TOKEN_FILE=/nowhere")
	s.write("daemon.tf", "")
	s.fails(applyArgs, "/nowhere")
	s.write("daemon.tf", fmt.Sprintf("provider \"exocomp\" {\n  socket = %q\n  token_file = %q\n}\n",
		s.daemon.server.Socket, s.daemon.server.TokenFile(rpc.RoleOperator)))
	s.apply()
	s.runs(1)
}
