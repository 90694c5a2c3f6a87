package daemon

import (
	"context"
	"os/exec"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/ansible"
	"github.com/exocomp/exocomp/orchestrator/internal/tofu"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"golang.org/x/sys/unix"
)

// tools finds the programs that the daemon runs. Asking one for its version
// starts it, which takes Ansible a third of a second, so the answer is kept as
// long as the file is the same.
type tools struct {
	tofu    func(context.Context) (tofu.Install, error)
	ansible func(context.Context) (ansible.Install, error)
}

// newTools makes temporary files in scratch, which is the caller's alone; empty
// means the system's directory.
func newTools(cfg Config, scratch string) *tools {
	return &tools{
		tofu: kept(cfg.TofuPath, "tofu", tofu.Locate),
		ansible: kept(cfg.AnsiblePath, "ansible-playbook", func(ctx context.Context, configured string) (ansible.Install, error) {
			return ansible.Locate(ctx, configured, scratch)
		}),
	}
}

// identity tells one executable from another.
type identity struct {
	path     string
	dev, ino uint64
	changed  time.Time
}

// kept returns locate with its last success remembered.
func kept[T any](configured, name string, locate func(context.Context, string) (T, error)) func(context.Context) (T, error) {
	if configured != "" {
		name = configured
	}
	turn := make(chan struct{}, 1) // a lock that a context ends the wait for: an answer may take long
	var last T
	var of identity
	return func(ctx context.Context) (T, error) {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			var none T
			return none, context.Cause(ctx)
		}
		now := identify(name)
		if now.path != "" && now == of {
			return last, nil
		}
		found, err := locate(ctx, configured)
		if err == nil {
			last, of = found, now
		}
		return found, err
	}
}

// identify returns the zero identity for what cannot be executed.
func identify(name string) identity {
	path, err := exec.LookPath(name)
	if err != nil {
		return identity{}
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return identity{}
	}
	return identity{path, st.Dev, st.Ino, time.Unix(st.Ctim.Unix())}
}

// report says of each program how it was found.
func (t *tools) report(ctx context.Context) []rpc.Tool {
	to, terr := t.tofu(ctx)
	an, aerr := t.ansible(ctx)
	return []rpc.Tool{
		tool("tofu", to.Path, to.Version, terr),
		tool("ansible-playbook", an.Path, an.Version, aerr),
	}
}

func tool(name, path, version string, err error) rpc.Tool {
	t := rpc.Tool{Name: name, Path: path, Version: version}
	if err != nil {
		f := orchestrator.FailureOf(err)
		t.Error, t.Hint = f.Message, f.Hint
	}
	return t
}

// Tools reports the programs as a daemon with these settings would find them,
// for `exocomp doctor` when there is no daemon.
func Tools(ctx context.Context, cfg Config) []rpc.Tool { return newTools(cfg, "").report(ctx) }
