package ansible

import (
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

// maxRequirements bounds a requirements file.
const maxRequirements = 1 << 20

// roleEntry is what of a role in a requirements file says where it is put.
type roleEntry struct {
	Name    string `yaml:"name"`
	Include string `yaml:"include"`
}

// UnmarshalYAML implements [yaml.Unmarshaler]: a role may be a line, too, of
// source, version and name.
func (r *roleEntry) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		if fields := strings.Split(n.Value, ","); len(fields) > 2 {
			r.Name = strings.TrimSpace(fields[2])
		}
		return nil
	}
	type plain roleEntry
	return n.Decode((*plain)(r))
}

// refuseRoleNames refuses roles whose names lead out of the directory into which
// ansible-galaxy installs them: it takes a name for a path, `../` and all.
func refuseRoleNames(requirements string, seen map[string]bool) error {
	if seen[requirements] {
		return nil
	}
	seen[requirements] = true
	text, err := durable.ReadRegular(requirements, maxRequirements)
	if err != nil {
		return orchestrator.Errorf(orchestrator.CodeInvalid, "read requirements: %w", err)
	}
	var top yaml.Node
	if err := yaml.Unmarshal(text, &top); err != nil {
		return orchestrator.Errorf(orchestrator.CodeInvalid, "%s: %w", filepath.Base(requirements), err)
	}
	if len(top.Content) == 0 {
		return orchestrator.Errorf(orchestrator.CodeInvalid, "%s is empty", filepath.Base(requirements))
	}
	var file struct {
		Roles []roleEntry `yaml:"roles"`
	}
	if top.Content[0].Kind == yaml.SequenceNode {
		err = top.Decode(&file.Roles)
	} else {
		err = top.Decode(&file)
	}
	if err != nil {
		return orchestrator.Errorf(orchestrator.CodeInvalid, "%s: %w", filepath.Base(requirements), err).
			WithHint("it is a list of roles, or has the lists roles and collections")
	}
	for _, r := range file.Roles {
		if r.Name == "." || r.Name == ".." || strings.ContainsAny(r.Name, `/\`) {
			return orchestrator.Errorf(orchestrator.CodeInvalid, "%s: the role name %q is a path", filepath.Base(requirements), r.Name).
				WithHint("give it a name, and where it comes from as src")
		}
		if r.Include == "" {
			continue
		}
		if err := refuseRoleNames(filepath.Join(filepath.Dir(requirements), r.Include), seen); err != nil {
			return err
		}
	}
	return nil
}
