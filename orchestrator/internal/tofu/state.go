package tofu

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
	tfjson "github.com/hashicorp/terraform-json"
)

// State maps each address in a workspace's state to its `id` attribute, which
// is empty where the resource has none.
type State map[string]string

// State reads the workspace's state with a child of this process: `tofu show
// -json` prints sensitive values in clear.
func (m Module) State(ctx context.Context) (State, error) {
	out, err := m.child(ctx, nil, "show", "-no-color", "-json")
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
		// a deposed object stands under the address of the one that replaces it
		if r.Mode == tfjson.ManagedResourceMode && r.DeposedKey == "" {
			s[r.Address] = idOf(r.AttributeValues)
		}
	}
	for _, c := range module.ChildModules {
		s.add(c)
	}
}

// storedState is what is read of a state as its backend stores it.
type storedState struct {
	Serial    int64                      `json:"serial"`
	Outputs   map[string]json.RawMessage `json:"outputs"`
	Resources []json.RawMessage          `json:"resources"`
}

// pull returns the stored state, nil where there is none.
func (m Module) pull(ctx context.Context) (*storedState, error) {
	out, err := m.child(ctx, nil, "state", "pull", "-no-color")
	if err != nil {
		return nil, fmt.Errorf("look for a state: %w", err)
	}
	if len(bytes.TrimSpace(out)) == 0 {
		return nil, nil
	}
	var s storedState
	if err := json.Unmarshal(out, &s); err != nil {
		return nil, fmt.Errorf("look for a state: %w", err)
	}
	return &s, nil
}

// Applied reports whether the workspace has a state that an apply, or a person,
// ever wrote to: a first one of [Module.EnsureState] does not count.
func (m Module) Applied(ctx context.Context) (bool, error) {
	s, err := m.pull(ctx)
	if s == nil {
		return false, err
	}
	// a backend may count the first write itself
	return s.Serial > firstSerial+1 || len(s.Outputs) > 0 || len(s.Resources) > 0, nil
}

// firstSerial is the serial number of an empty state that is written here.
const firstSerial = 0

// EnsureState writes an empty state where the workspace has none. Without one
// OpenTofu saves nothing until its first apply ends, so that a kill loses every
// resource it made; with one the periodic save works. It does nothing where a
// state exists.
func (m Module) EnsureState(ctx context.Context) error {
	if s, err := m.pull(ctx); err != nil || s != nil {
		return err
	}
	empty, err := json.Marshal(map[string]any{
		"version":           4,
		"terraform_version": m.Install.Version,
		"serial":            firstSerial,
		"lineage":           newLineage(),
		"outputs":           map[string]any{},
		"resources":         []any{},
	})
	if err != nil {
		return fmt.Errorf("write an empty state: %w", err)
	}
	if _, err := m.child(ctx, empty, "state", "push", "-no-color", "-"); err != nil {
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
	out, err := m.child(ctx, nil, "output", "-no-color", "-json")
	if err != nil {
		return nil, fmt.Errorf("read outputs: %w", err)
	}
	return out, nil
}

// Unlock runs `tofu force-unlock`, a person's decision: nothing here breaks a
// lock by itself. It breaks that very lock: another one, which somebody took
// meanwhile, has another id. Errors: [orchestrator.CodeInvalid] where lockID can
// be none, [orchestrator.CodeFailed] where tofu refuses.
func (m Module) Unlock(ctx context.Context, lockID string) error {
	again := "look the id up in what tofu said of the lock, then: exocomp workspace unlock " + m.Workspace.Name + " LOCK_ID"
	if lockID == "" || lockID[0] == '-' {
		return orchestrator.Errorf(orchestrator.CodeInvalid, "%q is not a lock id: it is empty or begins with a dash", lockID).WithHint("%s", again)
	}
	if _, err := m.child(ctx, nil, "force-unlock", "-no-color", "-force", lockID); err != nil {
		// What statemgr.Filesystem says, and others after it.
		if strings.Contains(err.Error(), "not locked") {
			return orchestrator.Errorf(orchestrator.CodeFailed,
				"the state of workspace %s is not locked (the lock of a local state ends with the tofu that holds it)", m.Workspace.Name).
				WithHint("nothing is to be done; should tofu name a lock again: exocomp workspace unlock %s LOCK_ID", m.Workspace.Name)
		}
		return orchestrator.Errorf(orchestrator.CodeFailed, "unlock state: %w", err).WithHint("%s", again)
	}
	return nil
}
