package daemon

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

// withRules loads settings that say text.
func withRules(t *testing.T, text string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "exocomp.hcl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	defaults, err := Defaults(0, "root", os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	return Load(defaults, path)
}

func TestAPlaybookRuleGrantsByThePath(t *testing.T) {
	c, err := withRules(t, `
playbook "/srv/play/site.yml" {
  egress       = [443, 8443]
  ssh_identity = ["/etc/exocomp/key"]
}
playbook "/srv/play/none.yml" {}
`)
	if err != nil {
		t.Fatal(err)
	}
	spec := func(path string) orchestrator.JobSpec {
		return orchestrator.JobSpec{
			Play:   &orchestrator.PlaySpec{Playbook: orchestrator.PlaybookRef{Path: path}, SSHIdentities: []string{"/mine"}},
			Egress: []int{443, 5432},
		}
	}
	for path, want := range map[string]orchestrator.JobSpec{
		"/srv/play/site.yml": {
			Play: &orchestrator.PlaySpec{
				Playbook: orchestrator.PlaybookRef{Path: "/srv/play/site.yml"}, SSHIdentities: []string{"/mine", "/etc/exocomp/key"},
			},
			Egress: []int{443, 5432, 8443},
		},
		"/srv/play/none.yml":  spec("/srv/play/none.yml"),
		"/srv/other/site.yml": spec("/srv/other/site.yml"),
	} {
		asked := spec(path)
		got := asked
		grant(c.Rules, &got)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v %+v\nwant %+v %+v", path, got, got.Play, want, want.Play)
		}
		if !reflect.DeepEqual(asked, spec(path)) {
			t.Errorf("%s: what was asked for is changed too: %+v", path, asked.Play)
		}
	}
}

func TestAMistakeInAPlaybookRuleIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"playbook \"/a.yml\" {\n  egres = [1]\n}":    "exocomp.hcl:2,3-8: Unsupported argument",
		"playbook \"/a.yml\" {\n  egress = \"x\"\n}": "exocomp.hcl:2,13-14: ",
		"playbook {}":           "exocomp.hcl:1,10-11: Missing path for playbook",
		"playbook \"a.yml\" {}": `playbook "a.yml": the path is not absolute`,
		"playbook \"/a.yml\" {}\nplaybook \"/b/../a.yml\" {}": "has two rules",
		"playbook \"/a.yml\" { egress = [70000] }":            "egress 70000 is not a TCP port",
		"playbook \"/a.yml\" { ssh_identity = [\"key\"] }":    `ssh_identity "key" is not an absolute path`,
	} {
		_, err := withRules(t, text)
		if orchestrator.CodeOf(err) != orchestrator.CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v\nwant %q", text, err, want)
		}
	}
}
