package provider

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/exocomp/exocomp/orchestrator"
)

// provisionModel is the resource as plan and state have it.
type provisionModel struct {
	ID               types.String   `tfsdk:"id"`
	Workspace        types.String   `tfsdk:"workspace"`
	Inventory        types.Dynamic  `tfsdk:"inventory"`
	Playbook         types.String   `tfsdk:"playbook"`
	OnboardPlaybook  types.String   `tfsdk:"onboard_playbook"`
	SSHWait          types.String   `tfsdk:"ssh_wait"`
	SSHIdentities    types.List     `tfsdk:"ssh_identities"`
	Vars             types.Dynamic  `tfsdk:"vars"`
	SecretsWO        types.Map      `tfsdk:"secrets_wo"`
	SecretsWOVersion types.String   `tfsdk:"secrets_wo_version"`
	Triggers         types.Map      `tfsdk:"triggers"`
	DestroyPlaybook  types.String   `tfsdk:"destroy_playbook"`
	Timeouts         timeouts.Value `tfsdk:"timeouts"`

	RunID          types.String `tfsdk:"run_id"`
	Status         types.String `tfsdk:"status"`
	PlaybookDigest types.String `tfsdk:"playbook_digest"`
	Steps          types.List   `tfsdk:"steps"`
	Hosts          types.Map    `tfsdk:"hosts"`
}

// statusPending stands for the state of a run while none does the resource's
// work: an apply was interrupted before the daemon had one.
const statusPending = "pending"

// stepModel is a step of the run.
type stepModel struct {
	Kind    string `tfsdk:"kind"`
	State   string `tfsdk:"state"`
	Message string `tfsdk:"message"`
}

var stepType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"kind": types.StringType, "state": types.StringType, "message": types.StringType,
}}

// hostModel is a host as the run's steps have seen it.
type hostModel struct {
	Address types.String `tfsdk:"address"`
	Port    types.Int64  `tfsdk:"port"`
	State   string       `tfsdk:"state"`
}

var hostType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"address": types.StringType, "port": types.Int64Type, "state": types.StringType,
}}

// sameInputs reports whether nothing differs of what a person wrote. Write-only
// values are in neither.
func (m *provisionModel) sameInputs(o *provisionModel) bool {
	return m.Workspace.Equal(o.Workspace) && m.Inventory.Equal(o.Inventory) &&
		m.Playbook.Equal(o.Playbook) && m.OnboardPlaybook.Equal(o.OnboardPlaybook) &&
		m.SSHWait.Equal(o.SSHWait) && m.SSHIdentities.Equal(o.SSHIdentities) && m.Vars.Equal(o.Vars) &&
		m.SecretsWOVersion.Equal(o.SecretsWOVersion) && m.Triggers.Equal(o.Triggers) &&
		m.DestroyPlaybook.Equal(o.DestroyPlaybook) && m.Timeouts.Equal(o.Timeouts)
}

// keep takes over the computed values of o.
func (m *provisionModel) keep(o *provisionModel) {
	m.RunID, m.Status, m.PlaybookDigest, m.Steps, m.Hosts = o.RunID, o.Status, o.PlaybookDigest, o.Steps, o.Hosts
}

// forget makes the computed values unknown: an apply will tell.
func (m *provisionModel) forget() {
	m.RunID, m.Status, m.PlaybookDigest = types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
	m.Steps, m.Hosts = types.ListUnknown(stepType), types.MapUnknown(hostType)
}

// pend makes the computed values those of a resource without a run.
func (m *provisionModel) pend() {
	m.ID, m.SecretsWO = m.Workspace, types.MapNull(types.StringType)
	m.RunID, m.Status, m.PlaybookDigest = types.StringNull(), types.StringValue(statusPending), types.StringNull()
	m.Steps, m.Hosts = types.ListValueMust(stepType, []attr.Value{}), types.MapValueMust(hostType, map[string]attr.Value{})
}

// record makes the computed values those of a run. No value in them comes from
// an input: OpenTofu takes the marks of sensitive ones off before a provider sees
// them.
func (m *provisionModel) record(ctx context.Context, run orchestrator.Run) diag.Diagnostics {
	m.ID, m.SecretsWO = types.StringValue(run.Workspace), types.MapNull(types.StringType)
	m.RunID, m.Status = types.StringValue(string(run.ID)), types.StringValue(string(run.State))
	onboard := ""
	if run.Spec.OnboardPlaybook != nil {
		onboard = run.Spec.OnboardPlaybook.Digest
	}
	m.PlaybookDigest = types.StringValue(joinDigests(run.Spec.Playbook.Digest, onboard))
	var all, diags diag.Diagnostics
	m.Steps, diags = types.ListValueFrom(ctx, stepType, stepsOf(run))
	all.Append(diags...)
	m.Hosts, diags = types.MapValueFrom(ctx, hostType, hostsOf(run))
	all.Append(diags...)
	return all
}

func stepsOf(run orchestrator.Run) []stepModel {
	steps := make([]stepModel, 0, len(run.Steps))
	for _, s := range run.Steps {
		message := ""
		if s.Report != nil {
			message = s.Report.Summary
		}
		if s.Failure != nil {
			message = s.Failure.Message
		}
		steps = append(steps, stepModel{Kind: string(s.Kind), State: string(s.State), Message: printable(message)})
	}
	return steps
}

// hostsOf puts the reports of the steps together: of each host the newest state,
// and the address from the step that dialled it.
func hostsOf(run orchestrator.Run) map[string]hostModel {
	hosts := map[string]hostModel{}
	for _, s := range run.Steps {
		if s.Report == nil {
			continue
		}
		for _, r := range s.Report.Hosts {
			h, ok := hosts[r.Name]
			if !ok {
				h = hostModel{Address: types.StringNull(), Port: types.Int64Null()}
			}
			h.State = string(r.State)
			if host, port, err := net.SplitHostPort(r.Address); err == nil {
				h.Address = types.StringValue(host)
				if n, err := strconv.ParseInt(port, 10, 32); err == nil {
					h.Port = types.Int64Value(n)
				}
			}
			hosts[r.Name] = h
		}
	}
	return hosts
}

// joinDigests makes one digest of those of the two playbooks: the playbook's own
// where there is no onboarding playbook.
func joinDigests(playbook, onboard string) string {
	if onboard == "" {
		return playbook
	}
	return digest([]string{playbook, onboard})
}

// digest names the content of a document.
func digest(v any) string {
	doc, err := json.Marshal(v) // sorts the keys of maps
	if err != nil {
		panic(err) // strings and maps of strings
	}
	sum := sha256.Sum256(doc)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// revision is what makes the same work new work: a digest of the triggers and
// the version of the secrets, empty where there is neither.
func revision(triggers map[string]string, secretsVersion string) string {
	if len(triggers) == 0 && secretsVersion == "" {
		return ""
	}
	keys := slices.Sorted(maps.Keys(triggers))
	parts := []string{secretsVersion}
	for _, k := range keys {
		parts = append(parts, k, triggers[k])
	}
	return digest(parts)
}

// ownership is what the resource keeps in its private state, which people do not
// see and OpenTofu passes back.
type ownership struct {
	// Owner is the token by which the daemon knows the resource.
	Owner string `json:"owner,omitempty"`
	// Imported says that the next update claims the workspace.
	Imported bool `json:"imported,omitempty"`
}

const ownershipKey = "ownership"

// newOwner makes a token that nobody else has.
func newOwner() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

type privateReader interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}

type privateWriter interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

// readOwnership returns the zero ownership where nothing was kept.
func readOwnership(ctx context.Context, private privateReader, diags *diag.Diagnostics) (o ownership) {
	doc, d := private.GetKey(ctx, ownershipKey)
	diags.Append(d...)
	if len(doc) == 0 {
		return o
	}
	if err := json.Unmarshal(doc, &o); err != nil {
		diags.AddError("The private state of the resource cannot be read", "It was written by another release, or by hand.")
	}
	return o
}

func (o ownership) save(ctx context.Context, private privateWriter) diag.Diagnostics {
	doc, err := json.Marshal(o)
	if err != nil {
		panic(err) // two plain fields
	}
	return private.SetKey(ctx, ownershipKey, doc)
}

// Defaults of the attribute `timeouts`.
const (
	defaultEnsureTimeout = time.Hour
	defaultDeleteTimeout = 30 * time.Minute
)
