package tofu

import (
	"context"
	"fmt"
	"strings"

	"github.com/exocomp/exocomp/orchestrator/internal/child"
)

// ask runs a short command and returns its standard output, which may hold
// secrets and is therefore never written anywhere. The error carries what the
// command said on standard error.
func ask(ctx context.Context, spec child.Spec) ([]byte, error) {
	out, said, err := child.Run(ctx, spec)
	if err == nil {
		return out, nil
	}
	err = fmt.Errorf("%s: %w", strings.Join(spec.Argv[1:], " "), err)
	if said := plainText(string(said)); said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return nil, err
}

// plainText makes tofu's boxed, multi-line diagnostics one line.
func plainText(s string) string {
	fields := strings.FieldsFunc(s, func(r rune) bool {
		return r == '\n' || r == '│' || r == '╷' || r == '╵'
	})
	var parts []string
	for _, f := range fields {
		if f = strings.TrimSpace(f); f != "" {
			parts = append(parts, f)
		}
	}
	return strings.Join(parts, " ")
}
