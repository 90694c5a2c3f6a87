package nethost

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// KeyType is the type of a host key as it stands in known_hosts.
type KeyType string

// The types of host keys a host can have. RSA takes a tenth of a second or more
// to make and is therefore not among the default ones.
const (
	ED25519 KeyType = ssh.KeyAlgoED25519
	ECDSA   KeyType = ssh.KeyAlgoECDSA256
	RSA     KeyType = ssh.KeyAlgoRSA
)

// hostKey is one host key: the public half and the private half's file.
type hostKey struct {
	public ssh.PublicKey
	file   []byte // OpenSSH format
}

func newHostKeys(types []KeyType, comment string) (map[KeyType]hostKey, error) {
	keys := make(map[KeyType]hostKey, len(types))
	for _, t := range types {
		k, err := newHostKey(t, comment)
		if err != nil {
			return nil, fmt.Errorf("make %s host key: %w", t, err)
		}
		keys[t] = k
	}
	return keys, nil
}

func newHostKey(t KeyType, comment string) (hostKey, error) {
	var private crypto.Signer
	var err error
	switch t {
	case ED25519:
		_, private, err = ed25519.GenerateKey(rand.Reader)
	case ECDSA:
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case RSA:
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	default:
		err = fmt.Errorf("unknown type")
	}
	if err != nil {
		return hostKey{}, err
	}
	block, err := ssh.MarshalPrivateKey(private, comment)
	if err != nil {
		return hostKey{}, err
	}
	public, err := ssh.NewPublicKey(private.Public())
	if err != nil {
		return hostKey{}, err
	}
	return hostKey{public: public, file: pem.EncodeToMemory(block)}, nil
}

// hostKeyPath is where sshd reads the private host key of a type.
func hostKeyPath(t KeyType) string {
	return "/etc/ssh/ssh_host_" + string(t) + "_key"
}

// PublicHostKey returns the current host key of a type in the form `type base64`
// of known_hosts, or an empty string if the host has none of that type.
func (h *Host) PublicHostKey(t KeyType) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	k, ok := h.keys[t]
	if !ok {
		return ""
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k.public)))
}

// HostKeyFingerprint returns the current host key of a type as `SHA256:…`, or an
// empty string if the host has none of that type.
func (h *Host) HostKeyFingerprint(t KeyType) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	k, ok := h.keys[t]
	if !ok {
		return ""
	}
	return ssh.FingerprintSHA256(k.public)
}
