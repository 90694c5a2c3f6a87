package rpc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/exocomp/exocomp/orchestrator"
)

// Where a client looks for the daemon.
const (
	SocketEnv    = "EXOCOMP_SOCKET"     // the socket
	TokenFileEnv = "EXOCOMP_TOKEN_FILE" //nolint:gosec // the name of a variable, no credential

	SocketName   = "exocomp.sock" // in the daemon's runtime directory
	SystemSocket = "/run/exocomp/exocomp.sock"
)

// userDir is the daemon's directory below those of the XDG base directory
// specification (https://specifications.freedesktop.org/basedir-spec).
const userDir = "exocomp"

// UserDataDir returns the data directory of an ordinary user's daemon, or
// nothing where the environment names neither XDG_DATA_HOME nor HOME.
func UserDataDir(env func(string) string) string {
	if data := env("XDG_DATA_HOME"); data != "" {
		return filepath.Join(data, userDir)
	}
	if home := env("HOME"); home != "" {
		return filepath.Join(home, ".local", "share", userDir)
	}
	return ""
}

// UserRuntimeDirs returns where an ordinary user's daemon may have its runtime
// directory: it takes the first, and a client looks at each, since the two may
// have been started with different environments.
func UserRuntimeDirs(env func(string) string) []string {
	var dirs []string
	if runtime := env("XDG_RUNTIME_DIR"); runtime != "" {
		dirs = append(dirs, filepath.Join(runtime, userDir))
	}
	if data := UserDataDir(env); data != "" {
		dirs = append(dirs, filepath.Join(data, "run"))
	}
	return dirs
}

// startHint is how this user starts a daemon: root has to mean it.
func startHint() string {
	if os.Geteuid() == 0 {
		return "start it: exocomp serve --allow-root"
	}
	return "start it: exocomp serve"
}

// FindSocket returns the socket that a client connects to which is given none.
func FindSocket() string {
	path, _ := lookupSocket("")
	return path
}

// lookupSocket returns the socket to connect to and the places it looked at:
// what is given, the environment, the user's daemon if its socket exists, the
// system's.
func lookupSocket(given string) (path string, looked []string) {
	if given != "" {
		return given, []string{given}
	}
	if p := os.Getenv(SocketEnv); p != "" {
		return p, []string{p + " (" + SocketEnv + ")"}
	}
	for _, dir := range UserRuntimeDirs(os.Getenv) {
		p := filepath.Join(dir, SocketName)
		if _, err := os.Stat(p); !errors.Is(err, fs.ErrNotExist) {
			return p, []string{p}
		}
		looked = append(looked, p)
	}
	return SystemSocket, append(looked, SystemSocket)
}

// probe says in a sentence why nobody answers on the socket, or nil.
func probe(ctx context.Context, path string, looked []string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err == nil {
		return conn.Close()
	}
	unavailable := func(format string, args ...any) *orchestrator.Error {
		return orchestrator.Errorf(orchestrator.CodeUnavailable, format, args...)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		hint := startHint()
		if len(looked) > 1 { // nobody said which
			hint += "; one with other directories is named by " + SocketEnv + "=RUNTIME_DIR/exocomp.sock"
		}
		return unavailable("no daemon: there is no socket at %s", strings.Join(looked, " or ")).WithHint("%s", hint)
	case errors.Is(err, syscall.ECONNREFUSED) && !isSocket(path):
		return orchestrator.Errorf(orchestrator.CodeInvalid, "%s is not a socket", path).
			WithHint("name the daemon's: --socket FILE or %s=FILE", SocketEnv)
	case errors.Is(err, syscall.ECONNREFUSED):
		return unavailable("no daemon: nobody answers on %s", path).WithHint("%s", startHint())
	case errors.Is(err, fs.ErrPermission):
		return unavailable("the daemon's socket %s may not be opened: permission denied", path).
			WithHint("call as the user that the daemon runs as, or as root")
	case errors.Is(err, syscall.EINVAL):
		return orchestrator.Errorf(orchestrator.CodeInvalid, "%s cannot be a socket: its path is too long", path).
			WithHint("reach it by a shorter one, a symbolic link say")
	case ctx.Err() != nil:
		return domainError(ctx, ctx.Err())
	default:
		return unavailable("the daemon's socket %s cannot be opened: %w", path, err).WithHint("%s", startHint())
	}
}

// isSocket reports whether a socket lies at path. Connecting to another file is
// refused as it is by a socket that nobody listens on.
func isSocket(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Type() == fs.ModeSocket
}

// lookupToken returns the token for the daemon on socket and the file that it
// is from: what is given, the environment, the operator's beside the socket,
// the reader's.
func lookupToken(given, socket string) (orchestrator.Secret, string, error) {
	if given == "" {
		given = os.Getenv(TokenFileEnv)
	}
	named := given != ""
	files := []string{given}
	if !named {
		dir := filepath.Dir(socket)
		files = []string{filepath.Join(dir, OperatorTokenFile), filepath.Join(dir, ReaderTokenFile)}
	}
	var why []string
	for _, f := range files {
		token, err := readToken(f)
		if err == nil {
			return token, f, nil
		}
		var e *orchestrator.Error
		var pe *fs.PathError
		switch {
		case errors.As(err, &e) && named: // it is the person's: it may be no token of ours at all
			return orchestrator.Secret{}, "", orchestrator.Errorf(orchestrator.CodeUnauthenticated, "%s", e.Message).
				WithHint("%s", nameToken(socket))
		case errors.As(err, &e):
			return orchestrator.Secret{}, "", &orchestrator.Error{
				Code: orchestrator.CodeUnauthenticated, Message: e.Message, Hint: e.Hint,
			}
		case errors.As(err, &pe):
			why = append(why, f+": "+pe.Err.Error())
		default:
			why = append(why, f+": "+err.Error())
		}
	}
	hint := nameToken(socket)
	if !named {
		hint = fmt.Sprintf("call as the user that the daemon runs as, or as root; or name another: --token-file FILE or %s=FILE", TokenFileEnv)
	}
	return orchestrator.Secret{}, "", orchestrator.Errorf(orchestrator.CodeUnauthenticated,
		"no token for the daemon can be read (%s)", strings.Join(why, "; ")).WithHint("%s", hint)
}

// nameToken is what a person does who named a file without a token.
func nameToken(socket string) string {
	return fmt.Sprintf("name the daemon's, %s say: --token-file FILE or %s=FILE",
		filepath.Join(filepath.Dir(socket), OperatorTokenFile), TokenFileEnv)
}
