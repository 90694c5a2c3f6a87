package rpc

import (
	"crypto/rand"

	"github.com/exocomp/exocomp/orchestrator"
)

// keyOr returns key, or a random one for an empty key.
func keyOr(key string) string {
	if key == "" {
		return rand.Text()
	}
	return key
}

// requireKey refuses a submit that could not be repeated.
func requireKey(key string) error {
	if key == "" {
		return orchestrator.Errorf(orchestrator.CodeInvalid, "the idempotency key is empty")
	}
	return nil
}
