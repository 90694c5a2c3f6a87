package rpc_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// socketPath returns a path short enough for a socket.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rpc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s.sock")
}

// leaveStale makes a socket on which nobody answers, as a killed daemon does.
func leaveStale(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestListenReplacesAStaleSocket(t *testing.T) {
	path := socketPath(t)
	leaveStale(t, path)
	l, err := rpc.Listen(path, rpc.ListenOptions{Mode: 0o660})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o660 {
		t.Errorf("mode = %v, want 0660", info.Mode().Perm())
	}
}

func TestListenRefusesASecondDaemon(t *testing.T) {
	path := socketPath(t)
	l, err := rpc.Listen(path, rpc.ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, err = rpc.Listen(path, rpc.ListenOptions{})
	if !errors.Is(err, orchestrator.ErrConflict) || !strings.HasPrefix(err.Error(), "a daemon already answers on "+path) {
		t.Errorf("second listen = %v, want conflict", err)
	}
	if conn, err := net.Dial("unix", path); err != nil {
		t.Errorf("the first is gone: %v", err)
	} else {
		_ = conn.Close()
	}
}

func TestOfDaemonsThatStartAtOnceOneListens(t *testing.T) {
	path := socketPath(t)
	leaveStale(t, path)
	const daemons = 16
	var mu sync.Mutex
	var listening []net.Listener
	var wg sync.WaitGroup
	for range daemons {
		wg.Go(func() {
			l, err := rpc.Listen(path, rpc.ListenOptions{})
			switch {
			case err == nil:
				mu.Lock()
				listening = append(listening, l)
				mu.Unlock()
			case !errors.Is(err, orchestrator.ErrConflict):
				t.Errorf("listen: %v", err)
			}
		})
	}
	wg.Wait()
	if len(listening) != 1 {
		t.Errorf("%d daemons listen, want 1", len(listening))
	}
	for _, l := range listening {
		_ = l.Close()
	}
}

func TestListenKeepsWhatIsNoSocket(t *testing.T) {
	path := socketPath(t)
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := rpc.Listen(path, rpc.ListenOptions{}); !errors.Is(err, orchestrator.ErrConflict) {
		t.Errorf("listen = %v, want conflict", err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "mine" {
		t.Errorf("the file holds %q, %v", data, err)
	}
}

func TestListenRefusesALongPathAndAnUnknownGroup(t *testing.T) {
	_, err := rpc.Listen("/"+strings.Repeat("x", 107), rpc.ListenOptions{})
	if !errors.Is(err, orchestrator.ErrInvalid) || !strings.Contains(err.Error(), "is 108 bytes long") {
		t.Errorf("long path: %v", err)
	}
	path := socketPath(t)
	if _, err := rpc.Listen(path, rpc.ListenOptions{Group: "no-such-group"}); err == nil {
		t.Error("an unknown group was taken")
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket was left: %v", err)
	}
}
