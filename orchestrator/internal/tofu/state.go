package tofu

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	tfjson "github.com/hashicorp/terraform-json"
)

// State maps each address in a workspace's state to its `id` attribute, which
// is empty where the resource has none.
type State map[string]string

// State reads the workspace's state with a child of this process: `tofu show
// -json` prints sensitive values in clear.
func (m Module) State(ctx context.Context) (State, error) {
	out, err := m.child(ctx, nil, "show", "-json")
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	return parseState(out)
}

func parseState(doc []byte) (State, error) {
	var raw tfjson.State
	// ids are strings; a number elsewhere must not fail the reading
	raw.UseJSONNumber(true)
	if err := json.Unmarshal(doc, &raw); err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	state := State{}
	if raw.Values != nil {
		state.add(raw.Values.RootModule)
	}
	return state, nil
}

func (s State) add(module *tfjson.StateModule) {
	if module == nil {
		return
	}
	for _, r := range module.Resources {
		if r.Mode == tfjson.ManagedResourceMode {
			s[r.Address] = idOf(map[string]any(r.AttributeValues))
		}
	}
	for _, c := range module.ChildModules {
		s.add(c)
	}
}

// EnsureState writes an empty state where the workspace has none. Without one
// OpenTofu saves nothing until its first apply ends, so that a kill loses every
// resource it made; with one the periodic save works. It does nothing where a
// state exists.
func (m Module) EnsureState(ctx context.Context) error {
	out, err := m.child(ctx, nil, "state", "pull")
	if err != nil {
		return fmt.Errorf("look for a state: %w", err)
	}
	if len(bytes.TrimSpace(out)) > 0 {
		return nil
	}
	empty, err := json.Marshal(map[string]any{
		"version":           4,
		"terraform_version": m.Install.Version,
		"serial":            0,
		"lineage":           newLineage(),
		"outputs":           map[string]any{},
		"resources":         []any{},
	})
	if err != nil {
		return fmt.Errorf("write an empty state: %w", err)
	}
	if _, err := m.child(ctx, empty, "state", "push", "-"); err != nil {
		return fmt.Errorf("write an empty state: %w", err)
	}
	return nil
}

// newLineage returns a random UUID (RFC 9562, version 4), the form that
// OpenTofu gives its lineages.
func newLineage() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Outputs returns `tofu output -json`, read once into memory: it prints
// sensitive values in clear.
func (m Module) Outputs(ctx context.Context) ([]byte, error) {
	out, err := m.child(ctx, nil, "output", "-json")
	if err != nil {
		return nil, fmt.Errorf("read outputs: %w", err)
	}
	return out, nil
}

// Unlock runs `tofu force-unlock`, a person's decision: nothing here breaks a
// lock by itself.
func (m Module) Unlock(ctx context.Context, lockID string) error {
	if lockID == "" || lockID[0] == '-' {
		return errors.New("the lock id is empty or begins with a dash")
	}
	if _, err := m.child(ctx, nil, "force-unlock", "-force", lockID); err != nil {
		return fmt.Errorf("unlock state: %w", err)
	}
	return nil
}
