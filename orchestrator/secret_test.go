package orchestrator_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

func TestSecretPrintsNothingThroughAnyFormatter(t *testing.T) {
	const plain = "hunter2-hunter2"
	s := orchestrator.NewSecret(plain)
	holder := struct {
		S orchestrator.Secret
		P *orchestrator.Secret
	}{s, &s}
	var out []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		out = append(out, fmt.Sprintf(verb, s), fmt.Sprintf(verb, holder))
	}
	doc, err := json.Marshal(holder)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", s, "holder", holder)
	out = append(out, string(doc), log.String(), s.String())
	for _, text := range out {
		if strings.Contains(text, plain) || strings.Contains(text, fmt.Sprintf("%x", plain)) {
			t.Errorf("printed %q", text)
		}
	}
}
