package tofu

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

func TestWatchedFiles(t *testing.T) {
	top := t.TempDir()
	files := map[string]string{
		"infra/main.tf":                 `module "net" { source = "./net" }`,
		"infra/hosts.tofu":              `module "far" { source = "../shared/far" }`,
		"infra/more.tf.json":            `{"module": {"json": {"source": "./json"}, "registry": {"source": "hashicorp/consul/aws"}}}`,
		"infra/broken.tf":               `module "broken" { source = "./broken" } }`,
		"infra/terraform.tfvars":        ``,
		"infra/x.auto.tfvars":           ``,
		"infra/y.auto.tfvars.json":      `{}`,
		"infra/net/net.tf":              `module "back" { source = "../" }`, // a circle
		"infra/json/json.tofu.json":     `{}`,
		"infra/json/terraform.tfvars":   ``, // of no root module
		"infra/broken/main.tf":          ``,
		"shared/far/far.tf":             `module "v" { source = var.where }`,
		"prod.tfvars":                   ``,
		"infra/other.tfvars":            ``,
		"infra/terraform.tfstate":       ``,
		"infra/.terraform.lock.hcl":     ``,
		"infra/.terraform/modules/m.tf": ``,
		"infra/plan.tfplan":             ``,
		"infra/crash.log":               ``,
		"infra/.#main.tf":               ``,
		"infra/README.md":               ``,
		"infra/unused/unused.tf":        ``,
	}
	for name, text := range files {
		path := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	ws := orchestrator.Workspace{Dir: filepath.Join(top, "infra"), VarFiles: []string{filepath.Join(top, "prod.tfvars")}}
	for _, f := range WatchedFiles(ws, LocalModules(ws.Dir)) {
		got = append(got, strings.TrimPrefix(f, top+"/"))
	}
	want := []string{
		"infra/broken.tf", "infra/broken/main.tf", "infra/hosts.tofu", "infra/json/json.tofu.json", "infra/main.tf", "infra/more.tf.json",
		"infra/net/net.tf", "infra/terraform.tfvars", "infra/x.auto.tfvars", "infra/y.auto.tfvars.json", "prod.tfvars", "shared/far/far.tf",
	}
	if !slices.Equal(got, want) {
		t.Errorf("watched:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
