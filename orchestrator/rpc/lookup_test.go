package rpc_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/exocomp/exocomp/orchestrator/rpc/rpctest"
)

// clearEnv makes the test independent of who runs it.
func clearEnv(t *testing.T) {
	t.Helper()
	for _, name := range []string{rpc.SocketEnv, rpc.TokenFileEnv, "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "HOME"} {
		t.Setenv(name, "")
	}
}

// startIt is the hint for whoever runs the test: the daemon refuses root unasked.
func startIt() string {
	if os.Geteuid() == 0 {
		return "start it: exocomp serve --allow-root"
	}
	return "start it: exocomp serve"
}

func dialError(t *testing.T, opts rpc.ClientOptions) error {
	t.Helper()
	c, err := rpc.Dial(t.Context(), opts)
	if err == nil {
		_ = c.Close()
		t.Fatal("dial succeeded")
	}
	return err
}

func TestNoDaemonSaysWhereItLooked(t *testing.T) {
	clearEnv(t)
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	t.Setenv("HOME", "/home/ann")
	err := dialError(t, rpc.ClientOptions{})
	want := "no daemon: there is no socket at " + filepath.Join(dir, "exocomp/exocomp.sock") +
		" or /home/ann/.local/share/exocomp/run/exocomp.sock or /run/exocomp/exocomp.sock; " + startIt() +
		"; one with other directories is named by EXOCOMP_SOCKET=RUNTIME_DIR/exocomp.sock"
	if !errors.Is(err, orchestrator.ErrUnavailable) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	t.Setenv(rpc.SocketEnv, "/nowhere/x.sock")
	want = "no daemon: there is no socket at /nowhere/x.sock (EXOCOMP_SOCKET); " + startIt()
	if err := dialError(t, rpc.ClientOptions{}); err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// A client without XDG_RUNTIME_DIR, under su say, finds the daemon that was
// started without it.
func TestLookupFindsTheDaemonOfAUserWithoutARuntimeDirectory(t *testing.T) {
	clearEnv(t)
	d := rpctest.Serve(t, rpctest.NewService())
	data := t.TempDir()
	t.Setenv("XDG_DATA_HOME", data)
	dir := rpc.UserRuntimeDirs(os.Getenv)[0]
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(d.Socket), dir); err != nil {
		t.Fatal(err)
	}
	c, err := rpc.Dial(t.Context(), rpc.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

func TestStaleSocketIsNoDaemon(t *testing.T) {
	path := socketPath(t)
	leaveStale(t, path)
	err := dialError(t, rpc.ClientOptions{Socket: path})
	want := "no daemon: nobody answers on " + path + "; " + startIt()
	if !errors.Is(err, orchestrator.ErrUnavailable) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// Connecting to any other file is refused as by a stale socket; starting a daemon
// would not help.
func TestAFileIsNoSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := dialError(t, rpc.ClientOptions{Socket: path})
	want := path + " is not a socket; name the daemon's: --socket FILE or EXOCOMP_SOCKET=FILE"
	if !errors.Is(err, orchestrator.ErrInvalid) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestLookupOrder(t *testing.T) {
	clearEnv(t)
	runtime := filepath.Dir(socketPath(t))
	d := rpctest.Serve(t, rpctest.NewService())
	if err := os.Symlink(filepath.Dir(d.Socket), filepath.Join(runtime, "exocomp")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	dial := func(what string, opts rpc.ClientOptions, want rpc.Role) {
		t.Helper()
		c, err := rpc.Dial(t.Context(), opts)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		defer func() { _ = c.Close() }()
		if c.Role() != want {
			t.Errorf("%s: role = %s, want %s", what, c.Role(), want)
		}
		if c.Daemon() != (rpc.Release{Contract: rpc.ContractVersion, Version: rpctest.Version}) {
			t.Errorf("%s: daemon = %+v", what, c.Daemon())
		}
	}
	dial("XDG", rpc.ClientOptions{}, rpc.RoleOperator)
	t.Setenv(rpc.TokenFileEnv, d.TokenFile(rpc.RoleReader))
	dial("token by environment", rpc.ClientOptions{}, rpc.RoleReader)
	dial("token given", rpc.ClientOptions{TokenFile: d.TokenFile(rpc.RoleOperator)}, rpc.RoleOperator)
	t.Setenv(rpc.SocketEnv, d.Socket)
	t.Setenv("XDG_RUNTIME_DIR", "/nowhere")
	dial("socket by environment", rpc.ClientOptions{}, rpc.RoleReader)
	t.Setenv(rpc.SocketEnv, "/nowhere")
	t.Setenv(rpc.TokenFileEnv, "")
	dial("socket given", rpc.ClientOptions{Socket: d.Socket}, rpc.RoleOperator)
	if err := os.Remove(d.TokenFile(rpc.RoleOperator)); err != nil {
		t.Fatal(err)
	}
	dial("only the reader's token", rpc.ClientOptions{Socket: d.Socket}, rpc.RoleReader)
}

func TestTokenSentences(t *testing.T) {
	clearEnv(t)
	d := rpctest.Serve(t, rpctest.NewService())
	wrong := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(wrong, []byte(strings.Repeat("0", 64)), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	name := "name the daemon's, " + d.TokenFile(rpc.RoleOperator) + " say: --token-file FILE or EXOCOMP_TOKEN_FILE=FILE"
	for _, test := range []struct{ file, want string }{
		{wrong, "the daemon on " + d.Socket + " does not know the token in " + wrong + "; name the token file of that daemon: --token-file FILE or EXOCOMP_TOKEN_FILE=FILE"},
		{empty, "the file " + empty + " holds no token; " + name},
		{"/dev/zero", "no token for the daemon can be read (/dev/zero: not a regular file but a device); " + name},
		{"/nowhere", "no token for the daemon can be read (/nowhere: no such file or directory); " + name},
	} {
		err := dialError(t, rpc.ClientOptions{Socket: d.Socket, TokenFile: test.file})
		if !errors.Is(err, orchestrator.ErrUnauthenticated) || err.Error() != test.want {
			t.Errorf("got  %v\nwant %s", err, test.want)
		}
	}
	// Only a file that nobody named is the daemon's to make again.
	if err := os.Truncate(d.TokenFile(rpc.RoleOperator), 0); err != nil {
		t.Fatal(err)
	}
	err := dialError(t, rpc.ClientOptions{Socket: d.Socket})
	want := "the file " + d.TokenFile(rpc.RoleOperator) + " holds no token; on the daemon's host: rm " + d.TokenFile(rpc.RoleOperator) + ", then start the daemon again"
	if !errors.Is(err, orchestrator.ErrUnauthenticated) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// Root may open everything: another user asks.
func TestUnreachableSocketAndTokenAreSentences(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to be somebody else")
	}
	d := rpctest.Serve(t, rpctest.NewService())
	if err := os.Chmod(filepath.Dir(d.Socket), 0o755); err != nil {
		t.Fatal(err)
	}
	ask := func() string {
		t.Helper()
		cmd := exec.Command("/proc/self/exe")
		cmd.Dir = "/"
		cmd.Env = []string{clientEnv + "=" + d.Socket}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.Output()
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			t.Fatalf("the client ended with %v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	want := "the daemon's socket " + d.Socket + " may not be opened: permission denied; " +
		"call as the user that the daemon runs as, or as root"
	if got := ask(); got != want {
		t.Errorf("socket:\ngot  %s\nwant %s", got, want)
	}
	if err := os.Chmod(d.Socket, 0o666); err != nil {
		t.Fatal(err)
	}
	want = "no token for the daemon can be read (" + d.TokenFile(rpc.RoleOperator) + ": permission denied; " +
		d.TokenFile(rpc.RoleReader) + ": permission denied); " +
		"call as the user that the daemon runs as, or as root; or name another: --token-file FILE or EXOCOMP_TOKEN_FILE=FILE"
	if got := ask(); got != want {
		t.Errorf("token:\ngot  %s\nwant %s", got, want)
	}
	d.Stop()
	if got, want := ask(), "; start it: exocomp serve"; !strings.HasSuffix(got, want) {
		t.Errorf("no daemon:\ngot  %s\nwant %s at its end", got, want)
	}
}

// Somebody else's socket, or a daemon that hangs, does not hang the client.
func TestDialEndsWithItsContextWhenNobodySpeaks(t *testing.T) {
	path := socketPath(t)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if _, err := rpc.EnsureTokens(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	c, err := rpc.Dial(ctx, rpc.ClientOptions{Socket: path})
	if err == nil {
		_ = c.Close()
	}
	if !errors.Is(err, orchestrator.ErrTimeout) {
		t.Errorf("dial = %v, want timeout", err)
	}
}
