package orchestrator

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestValidateEnvName(t *testing.T) {
	for _, name := range []string{"DB_PASSWORD", "LDAP_PASSWORD", "GITHUB_TOKEN", "token", "_x", "TFTP_KEY"} {
		if err := ValidateEnvName(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{
		"", "1A", "A-B", "A=B", "A B", "A\nB", "PATH", "path", "LD_PRELOAD", "PYTHONPATH", "ANSIBLE_CONFIG", "SSH_AUTH_SOCK",
		"EXOCOMP_ATTEMPT", "TF_VAR_x", "HOME", "https_proxy", "BASH_ENV", "GIT_SSH_COMMAND", "LC_ALL", "BASH_FUNC_x",
	} {
		if err := ValidateEnvName(name); CodeOf(err) != CodeInvalid {
			t.Errorf("%q: %v, want it refused", name, err)
		}
	}
}

func TestValidateVars(t *testing.T) {
	for _, doc := range []string{``, `{}`, `{"a":1,"b_2":{"ansible_host":"x"},"C":[null]}`} {
		if err := ValidateVars(json.RawMessage(doc)); err != nil {
			t.Errorf("%s: %v", doc, err)
		}
	}
	for doc, want := range map[string]string{
		`[]`:                     "no JSON object",
		`null`:                   "no JSON object",
		`"x"`:                    "no JSON object",
		`{"a":`:                  "no JSON object",
		`{"a-b":1,"1c":2}`:       `"1c"`,
		`{"ansible_ssh_args":1}`: "stands in the inventory",
		`{"exocomp_user":1}`:     "exocomp's own",
		`{"a":"` + strings.Repeat("x", MaxVars) + `"}`: "at most",
	} {
		if err := ValidateVars(json.RawMessage(doc)); CodeOf(err) != CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %q", doc, err, want)
		}
	}
}

func TestSameWork(t *testing.T) {
	digest := func(c string) string { return "sha256:" + strings.Repeat(c, 64) }
	base := RunSpec{
		Playbook: PlaybookRef{Path: "/a/site.yml", Entry: "site.yml", Digest: digest("a")},
		Vars:     json.RawMessage(`{"a":1,"b":[2]}`), SSHIdentities: []string{"/k"}, SSHWait: 1, Revision: "1",
	}
	same := map[string]func(*RunSpec){
		"nothing":               func(*RunSpec) {},
		"the place of the play": func(s *RunSpec) { s.Playbook.Path = "/b/site.yml" },
		"the bound of the wait": func(s *RunSpec) { s.SSHWait = 2 },
		"the order of keys":     func(s *RunSpec) { s.Vars = json.RawMessage(` {"b": [2], "a": 1}`) },
	}
	for what, change := range same {
		other := base
		change(&other)
		if !base.SameWork(other, false) {
			t.Errorf("%s makes another work", what)
		}
	}
	for what, change := range map[string]func(*RunSpec){
		"the playbook":            func(s *RunSpec) { s.Playbook.Digest = digest("b") },
		"the entry":               func(s *RunSpec) { s.Playbook.Entry = "other.yml" },
		"the onboarding playbook": func(s *RunSpec) { s.OnboardPlaybook = &PlaybookRef{Entry: "o.yml", Digest: digest("c")} },
		"a variable":              func(s *RunSpec) { s.Vars = json.RawMessage(`{"a":1,"b":[3]}`) },
		"no variables":            func(s *RunSpec) { s.Vars = nil },
		"a key file":              func(s *RunSpec) { s.SSHIdentities = nil },
		"an argument":             func(s *RunSpec) { s.Args = []string{"--check"} },
		"the revision":            func(s *RunSpec) { s.Revision = "2" },
	} {
		other := base
		change(&other)
		if base.SameWork(other, false) || other.SameWork(base, false) {
			t.Errorf("%s makes no other work", what)
		}
	}
	other := base
	other.Revision = "2"
	if !base.SameWork(other, true) {
		t.Error("the revision was not passed over")
	}
	if !(RunSpec{}).SameWork(RunSpec{Vars: json.RawMessage(`{}`)}, false) {
		t.Error("no variables and an empty object differ")
	}
}

func TestPlacesDigest(t *testing.T) {
	a, b := Place{Name: "a", Address: "Host.example", Port: 22}, Place{Name: "b"}
	want := PlacesDigest([]Place{a, b})
	lower := a
	lower.Address = "host.example"
	if PlacesDigest([]Place{b, lower}) != want {
		t.Error("order or case of an address makes other places")
	}
	moved := a
	moved.InstanceID = "i-2"
	for _, other := range [][]Place{{a}, {a, b, {Name: "c"}}, {moved, b}, {{Name: "a", Address: "host.example", Port: 23}, b}} {
		if PlacesDigest(other) == want {
			t.Errorf("%v are the same places", other)
		}
	}
}

func TestLeavingPins(t *testing.T) {
	pin := func(host string, port int, users ...PinUser) Pin { return Pin{Host: host, Port: port, Users: users} }
	web1, web2, other := PinUser{"edge", "web1"}, PinUser{"edge", "web2"}, PinUser{"lab", "web1"}
	pins := []Pin{pin("192.0.2.1", 22, web1, other), pin("192.0.2.2", 22, web2), pin("192.0.2.3", 22, other)}
	got := LeavingPins(pins, "edge", []Place{{Name: "web2", Address: "192.0.2.2", Port: 22}})
	if len(got) != 1 || got[0].Host != "192.0.2.1" || len(got[0].Users) != 1 || got[0].Users[0] != web1 {
		t.Errorf("leaving: %+v, want web1's reference alone", got)
	}
}
