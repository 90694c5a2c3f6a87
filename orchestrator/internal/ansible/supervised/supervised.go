// Package supervised runs a playbook against a workspace's standing inventory
// as one supervised phase of an attempt: what onboarding and playing have in
// common. It gathers the pins and the identities, prepares the run, executes
// it, and tells from its events how it went.
package supervised

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/ansible"
	"github.com/exocomp/exocomp/orchestrator/internal/hostkeys"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/internal/secrets"
	"github.com/exocomp/exocomp/orchestrator/inventory"
	"golang.org/x/sys/unix"
)

// Pins is what a run reads of the ledger.
type Pins interface {
	Pins(ctx context.Context, filter orchestrator.PinFilter) ([]orchestrator.Pin, error)
}

// Runner runs playbooks. Its fields do not change once it is in use.
type Runner struct {
	Pins     Pins
	Locate   func(context.Context) (ansible.Install, error)
	FleetKey orchestrator.Secret
	// RootByDefault says that ssh logs in as root where the inventory names no
	// user, because the daemon runs as root.
	RootByDefault bool
	// Vendor returns the directory of vendored collections and roles, or empty;
	// nil: there is never one.
	Vendor func() (string, error)
}

// Run is one run.
type Run struct {
	Phase     string
	Playbook  ansible.Playbook
	Inventory *inventory.Inventory // as the run shall see it
	Only      []string             // hosts to limit it to; empty: all
	Without   []string             // hosts to leave out of what Args limit it to; not with Only
	Vars      map[string]any
	Env       map[string]orchestrator.Secret // secrets for the playbook's environment, by their names
	Args      []string                       // passed through, as [ansible.ParseArgs] returned them
	// Identities are private key files on this machine that the run may log in
	// with, besides the fleet key.
	Identities []string
	// Again is the command that has it done once more, for hints; or empty.
	Again string
	// Prepare, where set, is called right before the phase is started, to lay out
	// what the playbook needs.
	Prepare func() error
}

// Result is how a run went. Err is nil for a run that did its work; it is the
// work's failure, not this package's.
type Result struct {
	Report   *orchestrator.Report
	Warnings []string
	Err      error
}

// lastLines is how much of the log a failure carries.
const lastLines = 20

// Execute runs r as a phase of a. Its error is that of [jobs.Attempt.Exec], or
// says why the phase could not be prepared; the handler returns it.
func (x *Runner) Execute(ctx context.Context, a *jobs.Attempt, r Run) (Result, error) {
	res, err := a.Exec(ctx, jobs.Tool{
		Phase:   r.Phase,
		Events:  true,
		Prepare: func(t *jobs.Tool) error { return x.prepare(ctx, a, r, t) },
		OnEvent: func(line []byte) {
			if text := ansible.Doing(line); text != "" {
				a.Doing(ctx, text)
			}
		},
	})
	if err != nil {
		return Result{}, err
	}
	return x.judge(a, r, res)
}

// prepare lays out what the run needs and completes its tool.
func (x *Runner) prepare(ctx context.Context, a *jobs.Attempt, r Run, tool *jobs.Tool) error {
	install, err := x.Locate(ctx)
	if err != nil {
		return err
	}
	if r.Prepare != nil {
		if err := r.Prepare(); err != nil {
			return err
		}
	}
	content, err := inventory.Render(r.Inventory)
	if err != nil {
		return err
	}
	known, err := x.knownHosts(ctx, r.Inventory)
	if err != nil {
		return err
	}
	if tool.AgentKeys, err = x.keys(r.Identities, r.Again); err != nil {
		return err
	}
	vendor := ""
	if x.Vendor != nil && r.Playbook.Seed == "" {
		if vendor, err = x.Vendor(); err != nil {
			return err
		}
	}
	p, err := ansible.Prepare(ansible.Input{
		Vendor:  vendor,
		Install: install, Playbook: r.Playbook, Work: a.WorkDir,
		Inventory: content, KnownHosts: known, Vars: r.Vars, Args: r.Args, Hosts: r.Only, Without: r.Without,
		Path: os.Getenv("PATH"),
	})
	if err != nil {
		return err
	}
	tool.Argv, tool.Env, tool.Dir = p.Argv, p.Env, p.Dir
	for name, secret := range r.Env {
		if err := orchestrator.ValidateEnvName(name); err != nil {
			return err
		}
		tool.Env = append(tool.Env, name+"="+secret.Reveal())
		tool.Secrets = append(tool.Secrets, secret)
	}
	return nil
}

// Vars decodes extra variables, a JSON object or nothing, keeping its numbers.
func Vars(doc json.RawMessage) (map[string]any, error) {
	if len(doc) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var vars map[string]any
	if err := d.Decode(&vars); err != nil {
		return nil, orchestrator.Errorf(orchestrator.CodeInternal, "decode the extra variables: %w", err)
	}
	return vars, nil
}

// knownHosts returns the pins of the inventory's hosts and no others.
func (x *Runner) knownHosts(ctx context.Context, inv *inventory.Inventory) ([]byte, error) {
	pins, err := x.Pins.Pins(ctx, orchestrator.PinFilter{})
	if err != nil {
		return nil, err
	}
	var hosts []hostkeys.HostWant
	for _, h := range inventory.Effective(inv) {
		if !h.Local() {
			hosts = append(hosts, hostkeys.HostWant{Host: h.Address, Port: h.Port})
		}
	}
	return hostkeys.KnownHosts(hostkeys.PinsOf(hosts, pins)), nil
}

// keys returns the private keys of the run's agent. A file that cannot be used
// is the user's mistake and refused by name before anything starts.
func (x *Runner) keys(files []string, again string) ([]orchestrator.Secret, error) {
	keys := []orchestrator.Secret{x.FleetKey}
	for _, f := range files {
		key, err := Identity(f, again)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// Identity reads a private key file of this machine that a run may log in with.
// again is the command that has the run done once more, or empty.
func Identity(file, again string) (orchestrator.Secret, error) {
	key, err := secrets.ReadKey(file)
	var unread *fs.PathError
	if errors.As(err, &unread) {
		e := orchestrator.Errorf(orchestrator.CodeFailed, "the key file %s (--ssh-identity) cannot be read on the daemon's host: %w", file, err)
		if again != "" {
			e = e.WithHint("give one that is there: %s", orchestrator.WithIdentity(again))
		}
		return orchestrator.Secret{}, e
	}
	return key, err
}

// judge reads the events of a finished phase.
func (x *Runner) judge(a *jobs.Attempt, r Run, res jobs.Result) (Result, error) {
	progress := ansible.NewProgress()
	events, err := os.Open(res.EventsPath)
	if err == nil {
		progress, err = ansible.ReadEvents(events)
		_ = events.Close()
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return Result{}, fmt.Errorf("read how the play went: %w", err)
	}
	report := progress.Report()
	for i, h := range report.Hosts {
		report.Hosts[i].Message = r.Playbook.Theirs(h.Message)
	}
	lines := a.LastLines(lastLines)
	for i, line := range lines {
		lines[i] = r.Playbook.Theirs(line)
	}
	out := Result{Report: report, Warnings: progress.Warnings()}
	if res.Cancelled {
		report.LastLines = lines
		out.Err = orchestrator.Errorf(orchestrator.CodeCancelled, "ansible-playbook was cancelled")
		return out, nil
	}
	end := ansible.End{ExitCode: res.ExitCode, Signal: unix.SignalNum(res.Signal)}
	scope := ansible.Scope{
		Workspace: a.Job.Workspace, Hosts: r.Only, Args: r.Args, LastLines: lines, Playbook: r.Playbook, Again: r.Again,
	}
	if len(scope.Hosts) == 0 {
		scope.Hosts = slices.DeleteFunc(r.Inventory.HostNames(), func(n string) bool { return slices.Contains(r.Without, n) })
	}
	if out.Err = ansible.Verdict(end, progress, scope); out.Err != nil {
		report.LastLines = lines
	}
	return out, nil
}
