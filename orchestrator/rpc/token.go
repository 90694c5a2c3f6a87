package rpc

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc/metadata"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

// Names of the token files, beside the socket.
const (
	OperatorTokenFile = "operator.token"
	ReaderTokenFile   = "reader.token"
)

// tokenBytes is the size of a token: 256 bits, written as hexadecimal digits.
const tokenBytes = 32

// maxTokenFile leaves room for blanks around a token.
const maxTokenFile = 4 << 10

// Tokens are the two bearer tokens that the daemon knows.
type Tokens struct{ Operator, Reader orchestrator.Secret }

// EnsureTokens reads the token files in dir and makes those that are missing,
// with [durable.GroupFile]. An existing file keeps its owner and group. A file
// that is damaged, or that everybody may read, is [orchestrator.CodeRefused].
func EnsureTokens(dir string) (Tokens, error) {
	operator, err := ensureToken(filepath.Join(dir, OperatorTokenFile))
	if err != nil {
		return Tokens{}, err
	}
	reader, err := ensureToken(filepath.Join(dir, ReaderTokenFile))
	if err != nil {
		return Tokens{}, err
	}
	return Tokens{Operator: operator, Reader: reader}, nil
}

func ensureToken(path string) (orchestrator.Secret, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		b := make([]byte, tokenBytes)
		_, _ = rand.Read(b) // never fails: see its documentation
		token := hex.EncodeToString(b)
		if err := durable.WriteFile(path, []byte(token+"\n"), durable.GroupFile); err != nil {
			return orchestrator.Secret{}, fmt.Errorf("make token: %w", err)
		}
		return orchestrator.NewSecret(token), nil
	}
	if err != nil {
		return orchestrator.Secret{}, fmt.Errorf("read token: %w", err)
	}
	if info.Mode().Perm()&0o007 != 0 {
		return orchestrator.Secret{}, orchestrator.Errorf(orchestrator.CodeRefused,
			"everybody may use the token file %s (mode %v)", path, info.Mode().Perm()).
			WithHint("make a new one: rm %s, then start the daemon again", path)
	}
	return readToken(path)
}

// readToken returns the token in the file at path. What is no token is
// [orchestrator.CodeRefused], as an empty one would match an empty one.
func readToken(path string) (orchestrator.Secret, error) {
	data, err := durable.ReadRegular(path, maxTokenFile)
	if err != nil {
		return orchestrator.Secret{}, fmt.Errorf("read token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if b, err := hex.DecodeString(token); err != nil || len(b) != tokenBytes {
		return orchestrator.Secret{}, orchestrator.Errorf(orchestrator.CodeRefused, "the file %s holds no token", path).
			WithHint("on the daemon's host: rm %s, then start the daemon again", path)
	}
	return orchestrator.NewSecret(token), nil
}

// role returns the role of a token, or empty. How long it takes says nothing
// about how much of the token is right.
func (t Tokens) role(token string) Role {
	given := sha256.Sum256([]byte(token))
	match := func(known orchestrator.Secret) bool {
		k := sha256.Sum256([]byte(known.Reveal()))
		return subtle.ConstantTimeCompare(given[:], k[:]) == 1 && !known.IsZero()
	}
	operator, reader := match(t.Operator), match(t.Reader)
	switch {
	case operator:
		return RoleOperator
	case reader:
		return RoleReader
	default:
		return ""
	}
}

// The bearer scheme of RFC 6750, section 2.1.
const (
	authorizationKey = "authorization"
	bearerPrefix     = "Bearer "
)

// bearerFrom returns the token that a call carries, or empty.
func bearerFrom(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	for _, v := range md.Get(authorizationKey) {
		if token, ok := strings.CutPrefix(v, bearerPrefix); ok {
			return token
		}
	}
	return ""
}

// bearer puts a token on every call. It implements
// [google.golang.org/grpc/credentials.PerRPCCredentials].
type bearer struct{ token orchestrator.Secret }

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{authorizationKey: bearerPrefix + b.token.Reveal()}, nil
}

// RequireTransportSecurity is false: a unix socket does not leave the host.
func (bearer) RequireTransportSecurity() bool { return false }
