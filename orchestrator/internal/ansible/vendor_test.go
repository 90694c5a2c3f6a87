package ansible

import (
	"slices"
	"testing"
)

func TestVendoredContentIsFoundBehindWhatAPersonNames(t *testing.T) {
	if got := vendorPaths(config{}, ""); got != nil {
		t.Errorf("without vendored content: %q", got)
	}
	for name, c := range map[string]struct {
		cfg  map[string]string
		want []string
	}{
		"no ansible.cfg": {nil, []string{
			"ANSIBLE_COLLECTIONS_PATH=/v/collections:/usr/share/ansible/collections",
			"ANSIBLE_ROLES_PATH=/v/roles:/usr/share/ansible/roles:/etc/ansible/roles",
		}},
		"paths of its own": {map[string]string{"collections_paths": "./mine:/theirs", "roles_path": "roles"}, []string{
			"ANSIBLE_COLLECTIONS_PATH=/src/mine:/theirs:/v/collections",
			"ANSIBLE_ROLES_PATH=/src/roles:/v/roles",
		}},
	} {
		if got := vendorPaths(config{base: "/src", defaults: c.cfg}, "/v"); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q\nwant %q", name, got, c.want)
		}
	}
}

func TestWhatGalaxyComplainsOfIsShort(t *testing.T) {
	text := "Starting galaxy role install process\n- downloading role\n [ERROR]: failed to download the file\n[WARNING]: - hello was NOT installed successfully.\n"
	if got, want := galaxyErrors(text), "[ERROR]: failed to download the file [WARNING]: - hello was NOT installed successfully."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := galaxyErrors("something else\n"); got != "something else" {
		t.Errorf("%q", got)
	}
}
