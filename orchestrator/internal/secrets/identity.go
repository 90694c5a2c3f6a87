package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"filippo.io/age"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

// Identity is the daemon's age X25519 key pair: whatever rests sealed in the
// ledger is sealed to it. It is safe for concurrent use.
type Identity struct {
	path string
	key  *age.X25519Identity
}

// maxIdentityFile bounds what is read as an identity; age-keygen writes 200 bytes.
const maxIdentityFile = 64 << 10

// LoadOrCreateIdentity reads the identity at path, in the format of
// age-keygen(1), or makes one there if no file exists. The caller holds the
// data directory's lock, so that no two processes make one.
//
// A file that others may read, or that holds no identity, is refused
// ([orchestrator.CodeRefused]) and left as it is: making another would lose
// everything that is sealed.
func LoadOrCreateIdentity(path string) (*Identity, error) {
	content, err := readIdentity(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return createIdentity(path)
	case err != nil:
		return nil, err
	}
	keys, err := age.ParseIdentities(bytes.NewReader(content))
	if err == nil && len(keys) == 1 {
		if key, ok := keys[0].(*age.X25519Identity); ok {
			return &Identity{path: path, key: key}, nil
		}
	}
	// The parser's error may quote the line, which is a secret: it is dropped.
	return nil, orchestrator.Errorf(orchestrator.CodeRefused, "%s does not hold one age X25519 identity", path).
		WithHint("restore it from the backup of this data directory; moving it away makes a new one, which opens nothing that is sealed")
}

func readIdentity(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read age identity: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read age identity: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, orchestrator.Errorf(orchestrator.CodeRefused,
			"the age identity %s is readable by others (mode %04o)", path, info.Mode().Perm()).
			WithHint("chmod 600 %s", path)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxIdentityFile))
	if err != nil {
		return nil, fmt.Errorf("read age identity %s: %w", path, err)
	}
	return content, nil
}

func createIdentity(path string) (*Identity, error) {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, fmt.Errorf("generate age identity: %w", err)
	}
	if err := durable.Mkdir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	content := "# exocomp seals what rests in its ledger to this identity; keep a copy with the backups\n" +
		"# public key: " + key.Recipient().String() + "\n" + key.String() + "\n"
	if err := durable.WriteFile(path, []byte(content), durable.PrivateFile); err != nil {
		return nil, err
	}
	return &Identity{path: path, key: key}, nil
}

// Seal encrypts plain so that only this identity opens it (binary age format).
func (i *Identity) Seal(plain []byte) ([]byte, error) {
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, i.key.Recipient())
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	if _, err := w.Write(plain); err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return sealed.Bytes(), nil
}

// Open decrypts what [Identity.Seal] returned. What was sealed for another
// identity, or is damaged, is refused ([orchestrator.CodeRefused]).
func (i *Identity) Open(sealed []byte) ([]byte, error) {
	r, err := age.Decrypt(bytes.NewReader(sealed), i.key)
	if err != nil {
		var foreign *age.NoIdentityMatchError
		if errors.As(err, &foreign) {
			return nil, orchestrator.Errorf(orchestrator.CodeRefused, "sealed for another identity than %s", i.path).
				WithHint("restore the %s that belongs to this ledger from its backup", i.path)
		}
		return nil, i.damaged(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		return nil, i.damaged(err)
	}
	return plain, nil
}

func (i *Identity) damaged(err error) error {
	return orchestrator.Errorf(orchestrator.CodeRefused, "the sealed value is damaged: %w", err).
		WithHint("restore the ledger from its backup")
}
