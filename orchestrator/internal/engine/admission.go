package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/ansible/supervised"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/internal/steps/onboard"
	"github.com/exocomp/exocomp/orchestrator/internal/steps/sshwait"
	"github.com/exocomp/exocomp/orchestrator/inventory"
)

// admission is what an attempt of a playbook run has decided about the hosts
// before it pushed anything to one. It is kept in the attempt's control
// directory, so that a daemon that takes the attempt up walks the same phases.
type admission struct {
	Onboard    []string `json:"onboard,omitempty"`    // pinned, to be onboarded
	Identities []string `json:"identities,omitempty"` // remembered ones that can be used
	Warnings   []string `json:"warnings,omitempty"`
	Left       leftOut  `json:"left"`
}

// leftOut are the hosts that could not be admitted, each with its line, and why.
type leftOut struct {
	Hosts    []orchestrator.HostReport `json:"hosts,omitempty"`
	Failures []*orchestrator.Failure   `json:"failures,omitempty"`
}

// add leaves out those of tried, hosts by name, that an outcome which failed has a
// line for, but for those in well. With them go those that it did not come to. It
// reports whether any is left out: else the failure is not a host's.
func (l *leftOut) add(out orchestrator.Outcome, tried []string, well map[string]bool) bool {
	var lines, silent []orchestrator.HostReport
	for _, name := range tried {
		if well[name] {
			continue
		}
		if h := lineOf(out.Report, name); h != nil {
			lines = append(lines, *h)
		} else {
			silent = append(silent, orchestrator.HostReport{Name: name, State: orchestrator.HostFailed, Message: "not admitted"})
		}
	}
	if len(lines) == 0 {
		return false
	}
	l.Failures = append(l.Failures, out.Failure)
	l.Hosts = slices.Concat(l.Hosts, lines, silent)
	return true
}

// lineOf returns a host's line in a report, which may be nil, or nil.
func lineOf(r *orchestrator.Report, name string) *orchestrator.HostReport {
	if r == nil {
		return nil
	}
	i := slices.IndexFunc(r.Hosts, func(h orchestrator.HostReport) bool { return h.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Hosts[i]
}

// names returns the names of the hosts.
func (l *leftOut) names() []string {
	var names []string
	for _, h := range l.Hosts {
		names = append(names, h.Name)
	}
	return names
}

// failure says why hosts were left out, nil where none was.
func (l *leftOut) failure() *orchestrator.Failure {
	if len(l.Failures) == 0 {
		return nil
	}
	f := *l.Failures[0]
	for _, more := range l.Failures[1:] {
		f.Message += "; " + more.Message
	}
	f.Message = "not admitted: " + strings.ReplaceAll(f.Message, "\n", "; ")
	return &f
}

// admissionFile holds an [admission] in an attempt's control directory.
const admissionFile = "admission.json"

const maxAdmission = 64 << 20

// admission returns what the attempt has decided, or decides it. An outcome that
// failed says why nothing is played.
func (e *Engine) admission(ctx context.Context, a *jobs.Attempt) (ad admission, out orchestrator.Outcome, err error) {
	path := filepath.Join(a.ControlDir, admissionFile)
	data, err := durable.ReadRegular(path, maxAdmission)
	if err == nil {
		return ad, out, json.Unmarshal(data, &ad)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return ad, out, err
	}
	if ad, out, err = e.decide(ctx, a); err != nil || !out.Succeeded() {
		return ad, out, err
	}
	if data, err = json.Marshal(ad); err == nil {
		err = durable.WriteFile(path, data, durable.PrivateFile)
	}
	return ad, out, err
}

// decide looks which hosts are to be admitted, waits for them and pins them.
func (e *Engine) decide(ctx context.Context, a *jobs.Attempt) (ad admission, out orchestrator.Outcome, err error) {
	row, err := e.StandingInventory(ctx, a.Job.Workspace)
	if err != nil {
		return ad, out, err
	}
	settings, err := e.Settings(ctx, a.Job.Workspace)
	if err != nil {
		return ad, out, err
	}
	ad.Identities, ad.Warnings = remembered(a, settings)
	missing, err := e.missing(ctx, a.Job, row, settings, slices.Concat(a.Job.Spec.Play.SSHIdentities, ad.Identities))
	if err != nil || len(missing) == 0 {
		return ad, out, err
	}
	again := a.Job.AgainCommand()
	corrected := orchestrator.ShellCommand("exocomp", "workspace", "apply", a.Job.Workspace, "--wait") + " && " + again
	tries := []func([]inventory.Host) (orchestrator.Outcome, error){
		func(hosts []inventory.Host) (orchestrator.Outcome, error) { return refused(a.Job, hosts), nil },
		func(hosts []inventory.Host) (orchestrator.Outcome, error) {
			bound := settings.Spec.SSHWait
			if settings.Kind == orchestrator.RunHandoff {
				return orchestrator.Outcome{Report: &orchestrator.Report{}}, nil
			}
			if bound == 0 {
				bound = orchestrator.DefaultSSHWait
			}
			return sshwait.Hosts(ctx, a, hosts, bound, "look at the machine's console or firewall; then: "+again)
		},
		func(hosts []inventory.Host) (orchestrator.Outcome, error) {
			return e.cfg.Handlers.Onboard.Pin(ctx, a, hosts, again, corrected)
		},
	}
	for _, try := range tries {
		if len(missing) == 0 {
			break
		}
		out, err := try(missing)
		if err != nil {
			return ad, out, err
		}
		if out.Succeeded() {
			continue
		}
		if !a.Job.Spec.KeepGoing || out.Failure.Code == orchestrator.CodeCancelled || !ad.Left.add(out, names(missing), reached(out.Report)) {
			return ad, out, nil
		}
		left := ad.Left.names()
		missing = slices.DeleteFunc(missing, func(h inventory.Host) bool { return slices.Contains(left, h.Name) })
	}
	if settings.Kind != orchestrator.RunHandoff {
		ad.Onboard = names(missing)
	}
	return ad, orchestrator.Outcome{}, nil
}

func names(hosts []inventory.Host) (list []string) {
	for _, h := range hosts {
		list = append(list, h.Name)
	}
	return list
}

// reached returns the hosts of a report, which may be nil, that answered or were
// pinned.
func reached(r *orchestrator.Report) map[string]bool {
	well := map[string]bool{}
	if r == nil {
		return well
	}
	for _, h := range r.Hosts {
		well[h.Name] = h.State == orchestrator.HostReady || h.State == orchestrator.HostPinned
	}
	return well
}

// missing returns the hosts that a playbook run must admit: those that its limit
// leaves, are not local and are not admitted; after a handoff, which onboards
// nobody, those without a pin. A host that is logged in to by a key file which is
// not among granted is refused.
func (e *Engine) missing(ctx context.Context, j orchestrator.Job, row orchestrator.Inventory, settings orchestrator.Run, granted []string) ([]inventory.Host, error) {
	inv, err := inventory.Parse(row.Workspace, row.Content)
	if err != nil {
		return nil, err
	}
	hosts, _ := inventory.Limited(inventory.Effective(inv), limitOf(j.Spec.Args))
	admissions, err := e.Admissions(ctx, j.Workspace)
	if err != nil {
		return nil, err
	}
	known, automation := map[string]bool{}, map[string]bool{}
	for _, ad := range admissions {
		known[ad.Host], automation[ad.Host] = true, ad.Login == orchestrator.LoginAutomation
	}
	var m orchestrator.Mistakes
	for _, text := range inventory.Ungranted(slices.DeleteFunc(slices.Clone(hosts), func(h inventory.Host) bool { return automation[h.Name] }), granted) {
		m.Addf("%s", text)
	}
	if err := m.Err(); err != nil {
		return nil, orchestrator.Errorf(orchestrator.CodeRefused, "%w", err).
			WithHint("%s", orchestrator.WithIdentity(j.AgainCommand()))
	}
	pinned := map[string]bool{}
	if settings.Kind == orchestrator.RunHandoff {
		pins, err := e.Pins(ctx, orchestrator.PinFilter{Workspace: j.Workspace})
		if err != nil {
			return nil, err
		}
		for _, p := range pins {
			pinned[p.HostPort()] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(hosts), func(h inventory.Host) bool {
		return h.Local() || known[h.Name] || pinned[orchestrator.KnownHostsName(strings.ToLower(h.Address), h.Port)]
	}), nil
}

func limitOf(args []string) string {
	for _, a := range args {
		if v, ok := strings.CutPrefix(a, "--limit="); ok {
			return v
		}
	}
	return "all"
}

// refused fails where hosts are not to be admitted: that is asked for, or the
// play only checks, which must change nothing.
func refused(j orchestrator.Job, hosts []inventory.Host) orchestrator.Outcome {
	var why string
	switch {
	case j.Spec.NoAdmit:
		why = "--no-admit"
	case slices.Contains(j.Spec.Args, "--check"):
		why = "--check admits nobody"
	default:
		return orchestrator.Outcome{}
	}
	report := &orchestrator.Report{}
	for _, h := range hosts {
		report.Hosts = append(report.Hosts, orchestrator.HostReport{
			Name: h.Name, Address: orchestrator.DialAddress(h.Address, h.Port), State: orchestrator.HostFailed, Message: "not admitted",
		})
	}
	list := names(hosts)
	refs := []string{"exocomp", "host", "onboard"}
	for _, n := range list {
		refs = append(refs, j.Workspace+"/"+n)
	}
	err := orchestrator.Errorf(orchestrator.CodeRefused, "%d host(s) of %s are not admitted (%s): %s",
		len(list), orchestrator.InventoryName(j.Workspace), why, strings.Join(list, ", ")).
		WithHint("admit them: %s", orchestrator.ShellCommand(append(refs, "--wait")...))
	return orchestrator.Fail(err, report)
}

// remembered returns the key files of the settings that are there, and says which
// are not: since they were given the machine may have been installed anew.
func remembered(a *jobs.Attempt, settings orchestrator.Run) (usable, warnings []string) {
	for _, f := range settings.Spec.SSHIdentities {
		if slices.Contains(a.Job.Spec.Play.SSHIdentities, f) {
			continue
		}
		if _, err := supervised.Identity(f, ""); err != nil {
			text := fmt.Sprintf("a key file of %s is left out: %s", settings.ID, orchestrator.FailureOf(err).Message)
			a.Logf("%s", text)
			warnings = append(warnings, text)
			continue
		}
		usable = append(usable, f)
	}
	return usable, warnings
}

// Settings returns the run that says how hosts of a workspace are admitted: see
// [onboard.Settings].
func (e *Engine) Settings(ctx context.Context, workspace string) (orchestrator.Run, error) {
	return onboard.Settings(ctx, e.Ledger, workspace)
}
