package rpc

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

// ListenOptions says who may connect. Connecting is not yet calling: every call
// needs a token.
type ListenOptions struct {
	Mode  fs.FileMode // zero: 0600
	Group string      // name of the socket's group; empty: the process's own
}

// Listen opens the daemon's socket at path. A socket that a killed daemon left
// behind is removed, but only when nobody answers on it: otherwise the error is
// [orchestrator.CodeConflict]. Closing the listener removes the socket.
func Listen(path string, opts ListenOptions) (net.Listener, error) {
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
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := share(path, opts); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return l, nil
}

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
