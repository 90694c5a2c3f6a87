// Package onboard is the handler of step 3, and of a standalone `host
// onboard`: it pins every host's key, runs the onboarding play as the
// inventory's user, and proves by a login of its own that the host is what the
// ledger will say it is.
//
// Running it again is safe: a pinned key is only held against its pin, and the
// seeded play changes nothing on a host that is onboarded.
package onboard

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/ansible"
	"github.com/exocomp/exocomp/orchestrator/internal/ansible/supervised"
	"github.com/exocomp/exocomp/orchestrator/internal/hostkeys"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/inventory"
	"github.com/exocomp/exocomp/seeds"
)

// Phases of an attempt.
const (
	phaseOnboard     = "onboard"
	phaseVerify      = "verify"       // the automation user, with the fleet key alone
	phaseVerifyLogin = "verify-login" // the inventory's user
)

// Extra variables of the onboarding play.
const (
	varFleetKey = "exocomp_fleet_pubkey"
	varUser     = "exocomp_user"
)

// Ledger is what the step reads of the ledger.
type Ledger interface {
	Run(ctx context.Context, id orchestrator.RunID) (orchestrator.Run, error)
	Runs(ctx context.Context, filter orchestrator.RunFilter) ([]orchestrator.Run, error)
	Inventory(ctx context.Context, workspace string) (orchestrator.Inventory, error)
}

// Runs is what [Settings] reads of the ledger.
type Runs interface {
	Runs(ctx context.Context, filter orchestrator.RunFilter) ([]orchestrator.Run, error)
}

// Handler onboards hosts.
type Handler struct {
	Ledger         Ledger
	Pinner         *hostkeys.Pinner
	Runner         *supervised.Runner
	Snapshots      supervised.Snapshots
	AutomationUser string
	FleetPublic    string // the fleet key's authorized_keys line
}

// work is what one attempt has to do.
type work struct {
	chain      *orchestrator.Run // whose step it is; nil for a standalone job
	inv        *inventory.Inventory
	hosts      []inventory.Host // those that are onboarded: none is local
	playbook   *orchestrator.PlaybookRef
	identities []string
	warnings   []string // about what was left out
	rotate     bool
	keepGoing  bool   // onboard the others where one host fails
	asked      string // the command that has it done once more, where it is not one of this package's; or empty
}

// Admission asks for hosts to be onboarded within a job that has more to do.
type Admission struct {
	Inventory  *inventory.Inventory
	Hosts      []inventory.Host          // their keys are pinned, and none is local
	Playbook   *orchestrator.PlaybookRef // in place of the seeded one, or nil
	Identities []string                  // private key files to log in with, besides the fleet key
	KeepGoing  bool                      // onboard the others where one host fails
	Again      string                    // the command that has the job done once more
}

// Pin records the keys of hosts, none of which is local, or holds them against
// their pins, within a job that has more to do: see [supervised.Pin]. again and
// corrected are the commands that have the job done once more: as things are, and
// after the configuration was corrected.
func (h *Handler) Pin(ctx context.Context, a *jobs.Attempt, hosts []inventory.Host, again, corrected string) (orchestrator.Outcome, error) {
	return supervised.Pin(ctx, a, h.Pinner, hosts, hostkeys.Request{Again: again, Corrected: corrected})
}

// Admit onboards hosts and proves it by a login. Its outcome admits those where
// that worked, also where it failed for others, and has a line for every host.
// Its phases are this package's.
func (h *Handler) Admit(ctx context.Context, a *jobs.Attempt, r Admission) (orchestrator.Outcome, error) {
	return h.onboard(ctx, a, work{
		inv: r.Inventory, hosts: r.Hosts, playbook: r.Playbook, identities: r.Identities,
		keepGoing: r.KeepGoing, asked: r.Again,
	})
}

// Handle implements [jobs.Handler].
func (h *Handler) Handle(ctx context.Context, a *jobs.Attempt) (orchestrator.Outcome, error) {
	w, err := h.plan(ctx, a)
	if err != nil {
		return orchestrator.Outcome{}, err
	}
	if len(w.hosts) == 0 {
		return orchestrator.Outcome{Report: &orchestrator.Report{Summary: "no host to onboard: all are local"}}, nil
	}
	if !a.Began(phaseOnboard) {
		if out, err := h.pin(ctx, a, w); err != nil || !out.Succeeded() {
			return out, err
		}
	}
	return h.onboard(ctx, a, w)
}

// onboard runs the onboarding play and admits the hosts where its login works.
func (h *Handler) onboard(ctx context.Context, a *jobs.Attempt, w work) (orchestrator.Outcome, error) {
	res, err := h.Runner.Execute(ctx, a, h.onboarding(ctx, a, w))
	if err != nil {
		return orchestrator.Outcome{}, err
	}
	out := orchestrator.Outcome{
		Failure: orchestrator.FailureOf(res.Err), Report: res.Report, Warnings: slices.Concat(w.warnings, res.Warnings),
	}
	if out.Succeeded() {
		return h.verify(ctx, a, w, out)
	}
	if out.Failure.Hint == "" && len(ansible.LoginRefused(out.Report)) > 0 {
		out.Failure.Hint = "put the fleet key there for that user (exocomp host fleet-key prints it), or log in with another key: " +
			orchestrator.WithIdentity(w.again(a.Job))
	}
	well := well(out.Report)
	w.hosts = slices.DeleteFunc(slices.Clone(w.hosts), func(x inventory.Host) bool { return !well[x.Name] })
	if !w.keepGoing || len(w.hosts) == 0 || out.Failure.Code == orchestrator.CodeCancelled {
		return out, nil
	}
	return h.verify(ctx, a, w, out)
}

// well returns the hosts on which a play did its work.
func well(report *orchestrator.Report) map[string]bool {
	names := map[string]bool{}
	for _, r := range report.Hosts {
		names[r.Name] = r.State == orchestrator.HostOK || r.State == orchestrator.HostChanged
	}
	return names
}

// plan gathers the hosts and the settings.
func (h *Handler) plan(ctx context.Context, a *jobs.Attempt) (work, error) {
	w := work{rotate: a.Job.Spec.Rotate}
	var spec orchestrator.RunSpec
	if a.Job.Run != "" {
		run, err := h.Ledger.Run(ctx, a.Job.Run)
		if err != nil {
			return w, err
		}
		// The step fails all the same where one host does, but it is done with the
		// others: a resume of the failed ones leaves them out.
		w.chain, spec, w.keepGoing = &run, run.Spec, true
	} else {
		newest, err := Settings(ctx, h.Ledger, a.Job.Workspace)
		if err != nil {
			return w, err
		}
		spec = newest.Spec
	}
	w.playbook = spec.OnboardPlaybook
	row, err := h.Ledger.Inventory(ctx, a.Job.Workspace)
	if err != nil {
		return w, err
	}
	if w.inv, err = supervised.Current(row, w.chain); err != nil {
		return w, err
	}
	wanted, only := a.Job.Spec.Hosts, supervised.Only(w.chain, a.Job)
	for _, host := range inventory.Effective(w.inv) {
		if host.Local() || len(wanted) > 0 && !slices.Contains(wanted, host.Name) || !only(host.Name) {
			continue
		}
		w.hosts = append(w.hosts, host)
	}
	for _, name := range wanted {
		if !slices.ContainsFunc(w.hosts, func(x inventory.Host) bool { return x.Name == name }) {
			return w, orchestrator.Errorf(orchestrator.CodeNotFound, "the inventory %s names no ssh host %s", row.Name(), name).
				WithHint("exocomp inventory show %s", a.Job.Workspace)
		}
	}
	return w, w.logIns(a, spec)
}

// logIns chooses the key files that the play may log in with. Those that were
// given for this job stand in place of the remembered ones. What was given must
// be there before anything is done: a pin is not rotated for a job that cannot
// log in. What is only remembered, say from before a reinstallation, may be gone.
func (w *work) logIns(a *jobs.Attempt, spec orchestrator.RunSpec) error {
	w.identities = spec.SSHIdentities
	remembered := w.chain == nil
	if given := a.Job.Spec.SSHIdentities; len(given) > 0 {
		w.identities, remembered = given, false
	}
	w.identities = slices.Compact(slices.Sorted(slices.Values(w.identities)))
	if a.Began(phaseOnboard) {
		return nil // what has begun has its keys
	}
	var usable []string
	for _, f := range w.identities {
		_, err := supervised.Identity(f, w.again(a.Job))
		switch {
		case err == nil:
			usable = append(usable, f)
		case !remembered:
			return err
		default:
			text := "a key file of the workspace's newest run is left out: " + orchestrator.FailureOf(err).Message
			a.Logf("%s", text)
			w.warnings = append(w.warnings, text)
		}
	}
	w.identities = usable
	return nil
}

// again is the command that has the work done once more.
func (w *work) again(j orchestrator.Job) string {
	switch {
	case w.asked != "":
		return w.asked
	case w.chain != nil:
		return w.chain.ResumeCommand()
	}
	words := []string{"exocomp", "host", "onboard"}
	if w.rotate {
		words = append(words, "--rotate")
	}
	for _, name := range j.Spec.Hosts {
		words = append(words, j.Workspace+"/"+name)
	}
	return orchestrator.ShellCommand(append(words, "--wait")...)
}

// corrected is the command that does it once the configuration is corrected.
func (w *work) corrected(j orchestrator.Job) string {
	if w.chain != nil {
		return w.chain.ReapplyCommand()
	}
	return orchestrator.ShellCommand("exocomp", "workspace", "apply", j.Workspace, "--wait") + " && " + w.again(j)
}

// Settings returns the run that says what a workspace's hosts are onboarded with
// outside a chain: its newest succeeded one or, where none has succeeded, its
// newest one. A chain that failed because a host was not to be onboarded is a
// reason to onboard by hand. Without any it is zero.
func Settings(ctx context.Context, l Runs, workspace string) (orchestrator.Run, error) {
	for _, state := range []orchestrator.RunState{orchestrator.RunSucceeded, ""} {
		runs, err := l.Runs(ctx, orchestrator.RunFilter{Workspace: workspace, State: state, Limit: 1})
		if err != nil {
			return orchestrator.Run{}, err
		}
		if len(runs) > 0 {
			return runs[0], nil
		}
	}
	return orchestrator.Run{}, nil
}

// pin records the hosts' keys, or holds them against their pins, before
// anything is pushed.
func (h *Handler) pin(ctx context.Context, a *jobs.Attempt, w work) (orchestrator.Outcome, error) {
	return supervised.Pin(ctx, a, h.Pinner, w.hosts, hostkeys.Request{
		Rotate: w.rotate, Again: w.again(a.Job), Corrected: w.corrected(a.Job),
	})
}

// onboarding is the run of the onboarding play, as the inventory's user.
func (h *Handler) onboarding(ctx context.Context, a *jobs.Attempt, w work) supervised.Run {
	r := supervised.Run{
		Phase:      phaseOnboard,
		Playbook:   ansible.Playbook{Seed: seeds.Onboard},
		Inventory:  w.inv,
		Only:       names(w.hosts),
		Vars:       map[string]any{varFleetKey: h.FleetPublic, varUser: h.AutomationUser},
		Identities: w.identities,
		Again:      w.again(a.Job),
	}
	if w.playbook != nil {
		dir := filepath.Join(a.WorkDir, "onboard-playbook")
		r.Playbook = ansible.Playbook{Snapshot: dir, Entry: w.playbook.Entry, Path: w.playbook.Path}
		r.Prepare = func() error { return supervised.Unpack(ctx, h.Snapshots, w.playbook.Digest, dir) }
	}
	return r
}

func names(hosts []inventory.Host) []string {
	out := make([]string, 0, len(hosts))
	for _, h := range hosts {
		out = append(out, h.Name)
	}
	return out
}
