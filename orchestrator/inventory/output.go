package inventory

import (
	"bytes"
	"encoding/json"

	"github.com/exocomp/exocomp/orchestrator"
)

// Output is one output of an OpenTofu root module, as `tofu output -json`
// prints it. The value of a sensitive one stands there in clear: treat the
// whole as a secret.
type Output struct {
	Sensitive bool            `json:"sensitive"`
	Type      json.RawMessage `json:"type"`
	Value     json.RawMessage `json:"value"`
}

// ParseOutputs reads what `tofu output -json` printed. Its errors never quote
// the document.
func ParseOutputs(data []byte) (map[string]Output, error) {
	if t := bytes.TrimSpace(data); len(t) == 0 || t[0] != '{' {
		return nil, orchestrator.Errorf(orchestrator.CodeInternal, "tofu output -json printed no JSON object")
	}
	outputs := map[string]Output{}
	if err := json.Unmarshal(data, &outputs); err != nil {
		return nil, orchestrator.Errorf(orchestrator.CodeInternal, "tofu output -json printed something else than outputs")
	}
	return outputs, nil
}
