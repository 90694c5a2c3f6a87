package rpc

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

// ListenOptions says who may connect. Connecting is not yet calling: every call
// needs a token.
type ListenOptions struct {
	Mode  fs.FileMode // zero: 0600
	Group string      // name of the socket's group; empty: the process's own
	// Logger is told why a removed socket cannot be made again; nil: nobody is.
	Logger *slog.Logger
}

// Listen opens the daemon's socket at path. A socket that a killed daemon left
// behind is removed, but only when nobody answers on it: otherwise the error is
// [orchestrator.CodeConflict]. Where somebody removes the socket of a listener
// that accepts, it is made again. Closing the listener removes the socket.
func Listen(path string, opts ListenOptions) (net.Listener, error) {
	return listen(path, opts, 2*time.Second)
}

func listen(path string, opts ListenOptions, look time.Duration) (net.Listener, error) {
	l, err := open(path, opts)
	if err != nil {
		return nil, err
	}
	return &listener{path: path, opts: opts, look: look, l: l}, nil
}

func open(path string, opts ListenOptions) (*net.UnixListener, error) {
	if len(path) > durable.MaxSocketPath {
		return nil, orchestrator.Errorf(orchestrator.CodeInvalid,
			"the socket path %s is %d bytes long; a unix socket takes %d", path, len(path), durable.MaxSocketPath)
	}
	unlock, err := lockDir(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	defer unlock()
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := share(path, opts); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return l, nil
}

// listener makes its socket again when a person, or a cleaner of temporary
// files, has removed it: nobody could reach the daemon any more, nor ask it to
// stop.
type listener struct {
	path string
	opts ListenOptions
	look time.Duration // how often it looks for its socket
	said string        // of Accept alone: the last error that was logged

	mu     sync.Mutex
	l      *net.UnixListener
	closed bool
}

// Accept implements [net.Listener]. One goroutine at a time may call it.
func (s *listener) Accept() (net.Conn, error) {
	for {
		l := s.current()
		if err := l.SetDeadline(time.Now().Add(s.look)); err != nil {
			return nil, err
		}
		conn, err := l.Accept()
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return conn, err
		}
		if _, err := os.Lstat(s.path); errors.Is(err, fs.ErrNotExist) {
			s.again()
		}
	}
}

func (s *listener) current() *net.UnixListener {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.l
}

// again opens the socket anew. Where that fails, say for want of the directory,
// it is tried again at the next look.
func (s *listener) again() {
	l, err := open(s.path, s.opts)
	if err != nil {
		if text := err.Error(); s.opts.Logger != nil && text != s.said {
			s.opts.Logger.Error("make the removed socket again", "socket", s.path, "err", err)
			s.said = text
		}
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = l.Close()
		return
	}
	s.l.SetUnlinkOnClose(false) // what lies there now is the new one
	_ = s.l.Close()
	s.l = l
}

// Close implements [net.Listener].
func (s *listener) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.l.Close()
}

// Addr implements [net.Listener].
func (s *listener) Addr() net.Addr { return s.current().Addr() }

// lockDir makes two starting daemons take turns, so that neither takes the
// other's fresh socket for a stale one.
func lockDir(dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(d.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		_ = d.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return func() { _ = d.Close() }, nil
}

// removeStale removes the socket at path if nobody answers on it. A path that
// is not there is fine.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listen on %s: %w", path, err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return orchestrator.Errorf(orchestrator.CodeConflict, "%s exists and is no socket", path).
			WithHint("move it away, or choose another socket")
	}
	conn, err := net.Dial("unix", path)
	switch {
	case err == nil:
		_ = conn.Close()
		fallthrough
	case errors.Is(err, syscall.EAGAIN): // its queue of connections is full
		return orchestrator.Errorf(orchestrator.CodeConflict, "a daemon already answers on %s", path).
			WithHint("see how it fares: exocomp doctor")
	case errors.Is(err, syscall.ECONNREFUSED):
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("remove stale socket: %w", err)
		}
		return nil
	default:
		return fmt.Errorf("ask who answers on %s: %w", path, err)
	}
}

// share gives the socket its group, then its mode.
func share(path string, opts ListenOptions) error {
	if opts.Group != "" {
		g, err := user.LookupGroup(opts.Group)
		if err != nil {
			return fmt.Errorf("find the socket's group: %w", err)
		}
		gid, err := strconv.Atoi(g.Gid)
		if err != nil {
			return fmt.Errorf("find the socket's group: %w", err)
		}
		if err := os.Chown(path, -1, gid); err != nil {
			return err
		}
	}
	mode := opts.Mode
	if mode == 0 {
		mode = 0o600
	}
	return os.Chmod(path, mode)
}
