package secrets

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/exocomp/exocomp/orchestrator"
)

// SealedStore keeps sealed values by kind and name.
type SealedStore interface {
	// Sealed returns a value; the error is [orchestrator.CodeNotFound] where
	// there is none.
	Sealed(ctx context.Context, kind, name string) ([]byte, error)
	// PutSealed stores a value durably.
	PutSealed(ctx context.Context, kind, name string, sealed []byte) error
}

// Where the fleet key rests in a [SealedStore].
const (
	fleetKind = "ssh-key"
	fleetName = "fleet"
)

// fleetComment ends the public line, so that people recognize it in an
// authorized_keys file.
const fleetComment = "exocomp-fleet"

// Fleet is the ed25519 key by which Ansible logs in to every onboarded host.
type Fleet struct {
	private orchestrator.Secret
	public  string
}

// FleetKey opens the fleet key of store, or makes, seals and stores one if
// there is none. A stored key that cannot be opened is never replaced: hosts
// trust it.
func FleetKey(ctx context.Context, store SealedStore, id *Identity) (*Fleet, error) {
	sealed, err := store.Sealed(ctx, fleetKind, fleetName)
	if errors.Is(err, orchestrator.ErrNotFound) {
		return createFleet(ctx, store, id)
	}
	if err != nil {
		return nil, fmt.Errorf("read the fleet key: %w", err)
	}
	plain, err := id.Open(sealed)
	if err != nil {
		return nil, fmt.Errorf("open the fleet key: %w", err)
	}
	return newFleet(plain)
}

func createFleet(ctx context.Context, store SealedStore, id *Identity) (*Fleet, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate the fleet key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(key, fleetComment)
	if err != nil {
		return nil, fmt.Errorf("encode the fleet key: %w", err)
	}
	plain := pem.EncodeToMemory(block)
	sealed, err := id.Seal(plain)
	if err != nil {
		return nil, fmt.Errorf("seal the fleet key: %w", err)
	}
	if err := store.PutSealed(ctx, fleetKind, fleetName, sealed); err != nil {
		return nil, fmt.Errorf("store the fleet key: %w", err)
	}
	return newFleet(plain)
}

func newFleet(plain []byte) (*Fleet, error) {
	signer, err := ssh.ParsePrivateKey(plain)
	if err != nil {
		return nil, orchestrator.Errorf(orchestrator.CodeRefused, "the stored fleet key is no private key").
			WithHint("restore the ledger from its backup")
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	return &Fleet{private: orchestrator.NewSecret(string(plain)), public: line + " " + fleetComment}, nil
}

// PublicLine returns the line for an authorized_keys file, without a newline:
// `ssh-ed25519 AAAA… exocomp-fleet`.
func (f *Fleet) PublicLine() string { return f.public }

// Private returns the private half in OpenSSH's PEM form.
func (f *Fleet) Private() orchestrator.Secret { return f.private }
