package tofu

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/zclconf/go-cty/cty"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

// maxConfiguration bounds a file of a configuration that is looked into.
const maxConfiguration = 4 << 20

// WatchedFiles lists what makes up the configuration of a workspace: the files
// of its root module and of the local modules that they call, as [LocalModules]
// lists them, the variables files that OpenTofu reads by itself, and the
// workspace's own. State, lock, plans, logs and `.terraform` are none of it. What
// cannot be read is left out. The list is sorted and has each file once.
func WatchedFiles(w orchestrator.Workspace, modules []string) []string {
	files := slices.Clone(w.VarFiles)
	files = append(files, automaticVariables(w.Dir)...)
	for _, dir := range modules {
		own, _ := ConfigurationFiles(dir)
		files = append(files, own...)
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// LocalModules lists the directories of the root module in dir, and of the
// modules that it and those call by relative paths. It reads all their files; of
// one with a syntax error it may miss some of the calls.
func LocalModules(dir string) (modules []string) {
	seen := map[string]bool{}
	for dirs := []string{dir}; len(dirs) > 0; dirs = dirs[1:] {
		place, err := filepath.EvalSymlinks(dirs[0])
		if err != nil || seen[place] {
			continue
		}
		seen[place] = true
		modules = append(modules, dirs[0])
		own, _ := ConfigurationFiles(dirs[0])
		for _, f := range own {
			for _, source := range calls(f) {
				dirs = append(dirs, filepath.Join(dirs[0], source))
			}
		}
	}
	return modules
}

// automaticVariables lists the variables files that OpenTofu reads unasked.
func automaticVariables(dir string) (files []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || strings.HasPrefix(name, ".") {
			continue
		}
		base := strings.TrimSuffix(name, ".json")
		if base == "terraform.tfvars" || strings.HasSuffix(base, ".auto.tfvars") {
			files = append(files, filepath.Join(dir, name))
		}
	}
	return files
}

var (
	moduleSchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "module", LabelNames: []string{"name"}}}}
	sourceSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "source"}}}
)

// calls returns the sources of the modules that a file calls by a
// relative path.
func calls(path string) (sources []string) {
	text, err := durable.ReadRegular(path, maxConfiguration)
	if err != nil {
		return nil
	}
	parse := hclparse.NewParser().ParseHCL
	if strings.HasSuffix(path, ".json") {
		parse = hclparse.NewParser().ParseJSON
	}
	file, _ := parse(text, path)
	if file == nil || file.Body == nil {
		return nil
	}
	content, _, _ := file.Body.PartialContent(moduleSchema)
	if content == nil {
		return nil
	}
	for _, block := range content.Blocks {
		attributes, _, _ := block.Body.PartialContent(sourceSchema)
		if attributes == nil || attributes.Attributes["source"] == nil {
			continue
		}
		v, diags := attributes.Attributes["source"].Expr.Value(nil)
		if diags.HasErrors() || v.IsNull() || !v.IsKnown() || !v.Type().Equals(cty.String) {
			continue // it hangs on a variable; tofu init knows
		}
		if s := v.AsString(); strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../") {
			sources = append(sources, filepath.FromSlash(s))
		}
	}
	return sources
}
