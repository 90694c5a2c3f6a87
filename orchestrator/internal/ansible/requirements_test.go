package ansible

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRoleNamesThatArePathsAreRefused(t *testing.T) {
	dir := t.TempDir()
	included := filepath.Join(dir, "more.yml")
	if err := os.WriteFile(included, []byte("- {src: greet.tgz, name: ../../out}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"roles: [{name: greet, src: greet.tgz}, acme.web]\ncollections: [{name: ./acme-tools-1.0.0.tar.gz}]": "",
		"- greet.tgz,1.0,greet\n- {src: https://example.org/greet.tgz}":                                      "",
		"roles: []": "",
		"roles: [{name: ../../../escaped, src: greet.tgz}]":     `the role name "../../../escaped" is a path`,
		"- {name: /srv/escaped, src: greet.tgz}":                `the role name "/srv/escaped" is a path`,
		"- greet.tgz,1.0,../escaped":                            `the role name "../escaped" is a path`,
		"- {name: .., src: greet.tgz}":                          `the role name ".." is a path`,
		"x: &n ../escaped\nroles: [{name: *n, src: greet.tgz}]": `the role name "../escaped" is a path`,
		"- include: more.yml":                                   `more.yml: the role name "../../out" is a path`,
		"- include: gone.yml":                                   "no such file",
		"foo":                                                   "cannot unmarshal",
		"roles: {":                                              "requirements.yml",
		"":                                                      "requirements.yml is empty",
	} {
		path := filepath.Join(dir, "requirements.yml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := refuseRoleNames(path, map[string]bool{})
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
