package secrets

import (
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

// Agent is an ssh-agent (draft-ietf-sshm-ssh-agent) over keys that are given
// once: it lists and signs, and refuses to add, remove or lock. See
// [Agent.Serve].
type Agent struct{ keys readOnlyAgent }

// NewAgent returns an agent that offers keys, OpenSSH or PEM private keys, in
// this order; one that is given twice is offered once. A key that cannot be
// used is [orchestrator.CodeInvalid] and named by its place; [CheckKey] names
// it better beforehand.
func NewAgent(keys []orchestrator.Secret) (*Agent, error) {
	ring, ok := agent.NewKeyring().(agent.ExtendedAgent)
	if !ok {
		return nil, errors.New("make ssh-agent: the keyring signs no SHA-2 RSA signatures")
	}
	for i, pem := range keys {
		name := fmt.Sprintf("private key %d of %d", i+1, len(keys))
		key, err := parseKey(name, pem)
		if err != nil {
			return nil, err
		}
		if err := ring.Add(agent.AddedKey{PrivateKey: key}); err != nil {
			return nil, orchestrator.Errorf(orchestrator.CodeInvalid, "%s cannot be used: %w", name, err)
		}
	}
	return &Agent{keys: readOnlyAgent{ring}}, nil
}

// maxKeyFile bounds the file of a private key: the largest are of some kilobytes.
const maxKeyFile = 64 << 10

// ReadKey returns the content of a private key file that a person named. An
// error that the file system gives names the file ([fs.PathError]); what
// cannot be used is that of [CheckKey].
func ReadKey(path string) (orchestrator.Secret, error) {
	data, err := durable.ReadRegular(path, maxKeyFile)
	if err != nil {
		return orchestrator.Secret{}, err
	}
	key := orchestrator.NewSecret(string(data))
	return key, CheckKey(path, key)
}

// CheckKey reports why a private key could not be offered by an agent, calling
// it by name; the error is [orchestrator.CodeInvalid].
func CheckKey(name string, pem orchestrator.Secret) error {
	_, err := parseKey(name, pem)
	return err
}

func parseKey(name string, pem orchestrator.Secret) (any, error) {
	key, err := ssh.ParseRawPrivateKey([]byte(pem.Reveal()))
	var locked *ssh.PassphraseMissingError
	switch {
	case err == nil:
		return key, nil
	case errors.As(err, &locked):
		return nil, orchestrator.Errorf(orchestrator.CodeInvalid,
			"%s is protected by a passphrase, which nobody could type", name).
			WithHint("give a copy without one (ssh-keygen -p -N '' -f COPY), or a key made for this purpose")
	default:
		return nil, orchestrator.Errorf(orchestrator.CodeInvalid, "%s is not a private key that can be used: %w", name, err).
			WithHint("give the private half, in OpenSSH or PEM form: ed25519, ecdsa or rsa")
	}
}

// errReadOnly answers every request that would change the agent.
var errReadOnly = errors.New("the agent of a job only lists and signs")

// readOnlyAgent lets List, Sign and SignWithFlags through.
type readOnlyAgent struct{ agent.ExtendedAgent }

func (readOnlyAgent) Add(agent.AddedKey) error       { return errReadOnly }
func (readOnlyAgent) Remove(ssh.PublicKey) error     { return errReadOnly }
func (readOnlyAgent) RemoveAll() error               { return errReadOnly }
func (readOnlyAgent) Lock([]byte) error              { return errReadOnly }
func (readOnlyAgent) Unlock([]byte) error            { return errReadOnly }
func (readOnlyAgent) Signers() ([]ssh.Signer, error) { return nil, errReadOnly }
func (readOnlyAgent) Extension(string, []byte) ([]byte, error) {
	return nil, agent.ErrExtensionUnsupported
}
