package daemon

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestSettingsAreListed: every key of exocomp.hcl stands in what `serve --help`
// prints and in the documentation, and what is printed is a settings file with
// the defaults in it.
func TestSettingsAreListed(t *testing.T) {
	docs, err := os.ReadFile("../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for i := range reflect.TypeFor[file]().NumField() {
		key, _, _ := strings.Cut(reflect.TypeFor[file]().Field(i).Tag.Get("hcl"), ",")
		if !strings.Contains(Settings, "\n  "+key+" ") && !strings.HasPrefix(Settings, "  "+key+" ") {
			t.Errorf("Settings lacks %s", key)
		}
		if !strings.Contains(string(docs), "\n| `"+key) {
			t.Errorf("docs/configuration.md lacks %s", key)
		}
	}
	path := filepath.Join(t.TempDir(), "exocomp.hcl")
	if err := os.WriteFile(path, []byte(Settings), 0o600); err != nil {
		t.Fatal(err)
	}
	defaults, err := Defaults(0, "root", func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	got, err := Load(Config{}, path)
	if err != nil {
		t.Fatal(err)
	}
	want := defaults
	want.TofuPath, want.AnsiblePath, want.File = "/usr/bin/tofu", "/usr/bin/ansible-playbook", path
	if len(got.Rules) != 1 {
		t.Errorf("the listed settings have the rules %+v, want the one", got.Rules)
	}
	got.Rules = nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the listed settings are %+v, want %+v", got, want)
	}
}
