package sandbox

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// ShimCommand is the argument that makes the executable a shim.
	ShimCommand = "sandbox-exec"
	// SpecFD is the descriptor on which a shim finds its end of the socket pair
	// of [NewLink]. The descriptors above it go to the tool as they are.
	SpecFD = 3
)

// Spec is what the shim becomes.
type Spec struct {
	Argv   []string // Argv[0] is an absolute path
	Env    []string // complete
	Dir    string
	Policy Policy
}

// Link connects the process that starts a shim with it: a [Spec] goes there,
// and back comes either the end of the stream, when the shim became the tool,
// or why it did not.
type Link struct{ conn *net.UnixConn }

// NewLink returns a link and the end that the shim inherits as [SpecFD]. The
// caller closes both: the shim's end once the shim is started.
func NewLink() (*Link, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make socket pair: %w", err)
	}
	shim := os.NewFile(uintptr(fds[1]), "shim")
	ours := os.NewFile(uintptr(fds[0]), "link")
	defer func() { _ = ours.Close() }()
	conn, err := net.FileConn(ours)
	if err != nil {
		_ = shim.Close()
		return nil, nil, fmt.Errorf("use socket pair: %w", err)
	}
	return &Link{conn.(*net.UnixConn)}, shim, nil
}

// Close ends the link. A shim that has not got its whole spec exits.
func (l *Link) Close() error { return l.conn.Close() }

var errShimDied = errors.New("the process that was to become it was killed before it could, so nothing ran: " +
	"by a person, or by the kernel for want of memory (journalctl -k tells)")

// Exec sends s to the shim and waits until it has become the tool. The error
// says why it could not; then the shim exits and no tool ever ran.
func (l *Link) Exec(s Spec) error {
	err := gob.NewEncoder(l.conn).Encode(s)
	if err == nil {
		err = l.conn.CloseWrite()
	}
	said, readErr := io.ReadAll(io.LimitReader(l.conn, 4096))
	switch died := errors.Is(err, unix.EPIPE) || errors.Is(readErr, unix.ECONNRESET); {
	case len(said) > 0:
		return errors.New(string(said))
	case died: // with its spec unread
		return errShimDied
	case err != nil:
		return fmt.Errorf("send the tool to its shim: %w", err)
	case readErr != nil:
		return fmt.Errorf("wait for the shim: %w", readErr)
	default:
		return nil
	}
}

// exitNoTool is the shell's code for a command that could not be started.
const exitNoTool = 127

// ExecMain is the entry of `exocomp sandbox-exec`. It reads a [Spec] from
// [SpecFD], applies its policy and replaces this process with the tool; it
// returns an exit code only where that failed.
func ExecMain() int {
	unix.CloseOnExec(SpecFD)
	f := os.NewFile(SpecFD, "spec")
	var s Spec
	if err := gob.NewDecoder(f).Decode(&s); err != nil {
		fmt.Fprintf(os.Stderr, "exocomp %s is started by the supervisor of a job: %v\n", ShimCommand, err)
		return exitNoTool
	}
	if err := become(s); err != nil {
		_, _ = io.WriteString(f, err.Error())
	}
	return exitNoTool
}

func become(s Spec) error {
	if len(s.Argv) == 0 {
		return errors.New("no command is given")
	}
	if err := s.Policy.Validate(); err != nil {
		return err
	}
	if s.Dir != "" {
		if err := os.Chdir(s.Dir); err != nil {
			return fmt.Errorf("enter the working directory: %w", err)
		}
	}
	if err := unix.Exec(s.Argv[0], s.Argv, s.Env); err != nil {
		return fmt.Errorf("execute %s: %w", s.Argv[0], err)
	}
	return nil
}
