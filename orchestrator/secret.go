package orchestrator

import (
	"fmt"
	"log/slog"
)

// redacted stands wherever a [Secret] would have been printed.
const redacted = "[redacted]"

// Secret holds a value that must not reach a log, an error, an event or a JSON
// document. Every formatter prints `[redacted]`; only [Secret.Reveal] returns
// the value, so that a search for that name finds each place that uses one.
// The zero Secret is empty.
type Secret struct{ value string }

// NewSecret wraps value.
func NewSecret(value string) Secret { return Secret{value} }

// Reveal returns the plain value.
func (s Secret) Reveal() string { return s.value }

// IsZero reports whether the secret is empty.
func (s Secret) IsZero() bool { return s.value == "" }

// Format implements [fmt.Formatter] for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, redacted) }

// String implements [fmt.Stringer].
func (Secret) String() string { return redacted }

// MarshalText implements [encoding.TextMarshaler]; JSON uses it too.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue implements [slog.LogValuer].
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
