package rpc

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

func TestASocketThatWasRemovedIsMadeAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := listen(path, ListenOptions{}, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan error)
	go func() {
		for {
			conn, err := l.Accept()
			accepted <- err
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	for range 3 {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		var conn net.Conn
		for conn == nil {
			if _, err := os.Lstat(path); err == nil {
				conn, _ = net.Dial("unix", path) // between its making and its listening it refuses
			}
			runtime.Gosched()
		}
		if err := <-accepted; err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the new socket: %v, %v", info, err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-accepted; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close: %v", err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Close left the socket: %v", err)
	}
}
