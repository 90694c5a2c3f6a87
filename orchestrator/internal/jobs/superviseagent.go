package jobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/secrets"
)

// agentServer is the running ssh-agent of a phase; the zero one is none.
type agentServer struct {
	stop context.CancelFunc
	done chan struct{}
}

func (s *supervisor) agentPath() string { return filepath.Join(s.spec.WorkDir, agentSocket) }

// startAgent serves the phase's keys, to its own processes only.
func (s *supervisor) startAgent() (*agentServer, error) {
	if len(s.spec.AgentKeys) == 0 {
		return &agentServer{}, nil
	}
	var keys []orchestrator.Secret
	for _, k := range s.spec.AgentKeys {
		keys = append(keys, orchestrator.NewSecret(k))
	}
	agent, err := secrets.NewAgent(keys)
	if err != nil {
		return nil, err
	}
	// One that an earlier phase's supervisor left when it was killed.
	if err := os.Remove(s.agentPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove a stale agent socket: %w", err)
	}
	ln, err := net.Listen("unix", s.agentPath())
	if err != nil {
		return nil, fmt.Errorf("listen for the ssh-agent: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	server := &agentServer{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(server.done)
		if err := agent.Serve(ctx, ln, s.owns); err != nil {
			s.slog.Error("serve the ssh-agent", "err", err)
		}
	}()
	return server, nil
}

// close ends the agent and removes its socket. It may be called twice.
func (a *agentServer) close() {
	if a.stop != nil {
		a.stop()
		<-a.done
	}
}

// owns reports whether a process belongs to this phase: it descends from the
// supervisor, to which orphans return, or lives in its cgroup.
func (s *supervisor) owns(pid int) bool {
	if descendsFrom(pid, os.Getpid()) {
		return true
	}
	if s.cgroup == "" {
		return false
	}
	theirs, err := cgroupOf(strconv.Itoa(pid))
	name := filepath.Base(string(s.cgroup))
	return err == nil && strings.Contains(theirs+"/", "/"+name+"/")
}
