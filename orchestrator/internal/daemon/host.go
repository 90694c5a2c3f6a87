package daemon

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/exocomp/exocomp/seeds"
)

// ListPins implements [rpc.Hosts].
func (d *Daemon) ListPins(ctx context.Context, filter orchestrator.PinFilter) ([]orchestrator.Pin, error) {
	return d.ledger.Pins(ctx, filter)
}

// GetFleetKey implements [rpc.Hosts].
func (d *Daemon) GetFleetKey(context.Context) (string, error) { return d.fleet.PublicLine(), nil }

// ForgetHost implements [rpc.Hosts].
func (d *Daemon) ForgetHost(ctx context.Context, ref string) (orchestrator.Pin, error) {
	pins, err := d.ledger.Pins(ctx, orchestrator.PinFilter{})
	if err != nil {
		return orchestrator.Pin{}, err
	}
	known, err := d.inventoryHosts(ctx)
	if err != nil {
		return orchestrator.Pin{}, err
	}
	user, err := resolvePinned(ref, pinUsers(pins), known)
	if err != nil {
		return orchestrator.Pin{}, err
	}
	var of []orchestrator.Pin
	for _, p := range pins {
		if slices.Contains(p.Users, user) {
			of = append(of, p)
		}
	}
	err = d.pins.ChangePins(ctx, orchestrator.PinChanges{
		By:     rpc.PeerFrom(ctx),
		Retire: []orchestrator.PinRetirement{{Pins: of, Reason: "forgotten by a person"}},
	})
	if err != nil {
		return orchestrator.Pin{}, err
	}
	return of[0], nil
}

func pinUsers(pins []orchestrator.Pin) []orchestrator.PinUser {
	var users []orchestrator.PinUser
	for _, p := range pins {
		users = append(users, p.Users...)
	}
	return users
}

// resolvePinned finds the host that a reference means among those with a pin.
// One of an inventory that has none, a local one say, is known all the same.
func resolvePinned(ref string, pinned, known []orchestrator.PinUser) (orchestrator.PinUser, error) {
	user, err := resolve(ref, pinned)
	if orchestrator.CodeOf(err) != orchestrator.CodeNotFound {
		return user, err
	}
	if u, found := resolve(ref, known); found == nil {
		return u, orchestrator.Errorf(orchestrator.CodeNotFound, "%s/%s has no pin: there is nothing to forget", u.Workspace, u.Host).
			WithHint("list the pins: exocomp host known-hosts --workspace %s", u.Workspace)
	}
	return user, err
}

// resolve finds the host that a reference means: `workspace/host`, or a host's
// name that only one workspace has.
func resolve(ref string, among []orchestrator.PinUser) (orchestrator.PinUser, error) {
	workspace, host, qualified := strings.Cut(ref, "/")
	if !qualified {
		workspace, host = "", ref
	}
	var found []orchestrator.PinUser
	for _, u := range among {
		if u.Host == host && (!qualified || u.Workspace == workspace) && !slices.Contains(found, u) {
			found = append(found, u)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return orchestrator.PinUser{}, orchestrator.Errorf(orchestrator.CodeNotFound, "no host %q is known", ref).
			WithHint("hosts are named WORKSPACE/HOST; list them: exocomp inventory show WORKSPACE")
	default:
		names := make([]string, 0, len(found))
		for _, u := range found {
			names = append(names, u.Workspace+"/"+u.Host)
		}
		return orchestrator.PinUser{}, orchestrator.Errorf(orchestrator.CodeInvalid, "the host name %q is not unique: %s", ref, strings.Join(names, ", ")).
			WithHint("name the workspace too: %s", names[0])
	}
}

// inventoryHosts lists every host of every inventory.
func (d *Daemon) inventoryHosts(ctx context.Context) ([]orchestrator.PinUser, error) {
	all, err := d.ledger.Inventories(ctx)
	if err != nil {
		return nil, err
	}
	var users []orchestrator.PinUser
	for _, i := range all {
		for _, h := range i.Hosts {
			users = append(users, orchestrator.PinUser{Workspace: i.Workspace, Host: h})
		}
	}
	return users, nil
}

// OnboardHosts implements [rpc.Hosts].
func (d *Daemon) OnboardHosts(ctx context.Context, key string, spec rpc.OnboardSpec) (orchestrator.Job, error) {
	var none orchestrator.Job
	known, err := d.inventoryHosts(ctx)
	if err != nil {
		return none, err
	}
	job := orchestrator.JobSpec{Rotate: spec.Rotate, SSHIdentities: spec.SSHIdentities}
	workspace := ""
	var m orchestrator.Mistakes
	for _, ref := range spec.Hosts {
		u, err := resolve(ref, known)
		if err != nil {
			m.Add(err)
			continue
		}
		if workspace != "" && workspace != u.Workspace {
			m.Addf("%s is of workspace %s, the others of %s: onboard one workspace at a time", ref, u.Workspace, workspace)
		}
		workspace = u.Workspace
		if !slices.Contains(job.Hosts, u.Host) {
			job.Hosts = append(job.Hosts, u.Host)
		}
	}
	for _, f := range spec.SSHIdentities {
		m.Add(checkIdentity(f))
	}
	if len(spec.Hosts) == 0 {
		m.Addf("no host is named")
	}
	if err := m.Err(); err != nil {
		return none, err
	}
	if err := d.onboardable(ctx, workspace, job.Hosts); err != nil {
		return none, err
	}
	return d.submitJob(ctx, key, orchestrator.JobHostOnboard, workspace, job)
}

// onboardable refuses hosts that cannot be onboarded: those of an inventory whose
// published copy is not what the ledger has, and local ones, which nobody logs
// in to.
func (d *Daemon) onboardable(ctx context.Context, workspace string, names []string) error {
	row, err := d.ledger.Inventory(ctx, workspace)
	if err != nil {
		return err
	}
	if err := d.engine.Settled(ctx); err != nil {
		return err
	}
	if err := d.publisher.Verify(row); err != nil {
		return err
	}
	hosts, err := effective(row)
	if err != nil {
		return err
	}
	var m orchestrator.Mistakes
	for _, h := range hosts {
		if h.Local() && slices.Contains(names, h.Name) {
			m.Addf("%s/%s is a local host (ansible_connection: local): there is nobody to log in as and nothing to onboard", workspace, h.Name)
		}
	}
	return m.Err()
}

// GetOnboardVars implements [rpc.Hosts].
func (d *Daemon) GetOnboardVars(ctx context.Context, ref string) (rpc.OnboardVars, error) {
	known, err := d.inventoryHosts(ctx)
	if err != nil {
		return rpc.OnboardVars{}, err
	}
	u, err := resolve(ref, known)
	if err != nil {
		return rpc.OnboardVars{}, err
	}
	row, err := d.ledger.Inventory(ctx, u.Workspace)
	if err != nil {
		return rpc.OnboardVars{}, err
	}
	doc, err := json.Marshal(map[string]string{
		"exocomp_fleet_pubkey": d.fleet.PublicLine(),
		"exocomp_user":         d.cfg.AutomationUser,
	})
	if err != nil {
		return rpc.OnboardVars{}, err
	}
	pinned, err := d.pinnedArgs(ctx, u)
	if err != nil {
		return rpc.OnboardVars{}, err
	}
	return rpc.OnboardVars{
		JSON: string(doc),
		Command: slices.Concat(
			[]string{"ansible-playbook", "-i", row.Path, "--limit", u.Host},
			pinned,
			[]string{"--extra-vars", string(doc), filepath.Join(d.seedDir(), seeds.Onboard)},
		),
	}, nil
}

// pinnedArgs returns the arguments that hold an ansible-playbook which a person
// runs to the host's pin. Where it has none, that person's ssh decides: it could
// accept a key only by writing into known_hosts, which is exocomp's.
func (d *Daemon) pinnedArgs(ctx context.Context, u orchestrator.PinUser) ([]string, error) {
	pins, err := d.ledger.Pins(ctx, orchestrator.PinFilter{Workspace: u.Workspace})
	if err != nil {
		return nil, err
	}
	if !slices.Contains(pinUsers(pins), u) {
		return nil, nil
	}
	vars, err := json.Marshal(map[string]string{
		"ansible_ssh_args": `-o 'UserKnownHostsFile="` + d.publisher.KnownHostsPath() + `"' -o StrictHostKeyChecking=yes`,
	})
	return []string{"--extra-vars", string(vars)}, err
}
