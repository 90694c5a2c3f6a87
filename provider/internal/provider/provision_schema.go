package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

const provisionDescription = "Provisions the hosts of a workspace: the exocomp daemon waits until SSH answers on each, pins the host keys, " +
	"onboards the hosts and runs a playbook on them, as one chain that crashes neither repeat nor lose a step of. " +
	"The hosts are those of `inventory`, made by this configuration; without it the daemon applies the workspace that it has registered under the name first.\n\n" +
	"A chain that fails fails the apply. Correct the cause and apply again: the same run goes on at the step that failed, and what succeeded is not repeated. " +
	"The same holds after an interrupt or a timeout: the run goes on by itself, and the next apply follows it.\n\n" +
	"Everything but `secrets_wo` is written in clear to plan and state. One workspace belongs to one resource: " +
	"hand over all its hosts together (`for_each` stands in `inventory`, not on the resource)."

func provisionSchema(ctx context.Context) schema.Schema {
	return schema.Schema{
		MarkdownDescription: provisionDescription,
		Version:             provisionVersion,
		Attributes: map[string]schema.Attribute{
			"workspace": schema.StringAttribute{
				MarkdownDescription: "Name of the workspace: letters, digits, `_` and `-`, starting with a letter, at most 63. " +
					"Plays reach its hosts as `tf:NAME`. With `inventory` it must not be registered with the daemon; without, it must be. " +
					"Another name replaces the resource.",
				Required:      true,
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
				Validators:    []validator.String{workspaceRule},
			},
			"playbook": schema.StringAttribute{
				MarkdownDescription: "Path of the playbook that configures the hosts, relative to the working directory; `~` is not expanded. " +
					"The whole tree that belongs to it travels along: its nearest parent directory with `ansible.cfg`, `roles/`, " +
					"`requirements.yml` or `.git`, else its own directory; never `*.tfstate*`, `*.tfvars*`, `.terraform*` and `.git`. " +
					"A changed file in it is a change of the resource: give the playbook a directory of its own with an `ansible.cfg` in it, " +
					"or an edit of the configuration beside it, in a git clone of any file, runs the chain. " +
					"A playbook that this very configuration writes is seen only when it is there: make the resource depend on it, and name what it is made of in `triggers`.",
				Required:   true,
				Validators: []validator.String{pathRule},
			},
			"inventory": schema.DynamicAttribute{
				MarkdownDescription: "The hosts, either as a map of host names to their variables or as an Ansible inventory tree " +
					"(an object with `all`, or groups of nothing but `hosts`, `children` and `vars`). " +
					"How a host is reached is said by `ansible_host`, `ansible_port`, `ansible_user`, `ansible_connection`, `ansible_python_interpreter`, " +
					"`ansible_become…` and `ansible_ssh_private_key_file`; every other name that begins with `ansible_` is refused. Strings are data: templates in them are not evaluated. " +
					"Names that look like a secret's are refused: use `secrets_wo`. " +
					"Default: none, and the daemon applies the workspace that it has registered.",
				Optional: true,
			},
			"onboard_playbook": schema.StringAttribute{
				MarkdownDescription: "Path of a playbook that onboards the hosts, taken as `playbook` is. It gets the variables `exocomp_fleet_pubkey` and `exocomp_user`. " +
					"Default: the daemon's own, which creates the automation user with the fleet key and passwordless become.",
				Optional:   true,
				Validators: []validator.String{pathRule},
			},
			"ssh_wait": schema.StringAttribute{
				MarkdownDescription: "How long all hosts together may take until SSH answers, as a duration (`90s`, `10m`), at most `24h`. Default: `5m`.",
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString("5m"),
				Validators:          []validator.String{waitRule},
				PlanModifiers:       []planmodifier.String{sameDuration{}},
			},
			"ssh_identities": schema.ListAttribute{
				MarkdownDescription: "Private key files to log in with before the fleet key is authorized, as absolute paths on the daemon's host. " +
					"Each `ansible_ssh_private_key_file` of the inventory must be among them. Default: none, the daemon's fleet key alone.",
				ElementType: types.StringType,
				Optional:    true,
				Validators:  []validator.List{listvalidator.NoNullValues(), listvalidator.ValueStringsAre(daemonPathRule)},
			},
			"vars": schema.DynamicAttribute{
				MarkdownDescription: "Extra variables of the playbook: an object with values of any type, at most 1 MiB as JSON. Strings are data: templates in them are not evaluated. " +
					"Names may not begin with `ansible_` or `exocomp_`, nor look like a secret's: use `secrets_wo`. Default: none.",
				Optional: true,
			},
			"secrets_wo": schema.MapAttribute{
				MarkdownDescription: "Secrets for the environment of the playbook, by the names of the variables: `lookup('env', 'DB_PASSWORD')`. " +
					"Write-only: they stand in no plan and no state, may be ephemeral, and rest sealed with the daemon for as long as the run needs them. " +
					"Names that change how programs work (`PATH`, `LD_*`, `ANSIBLE_*`, …) are refused. " +
					"A changed value is no change of the resource: change `secrets_wo_version` with it. `destroy_playbook` gets those of the newest run. Default: none. " +
					"Needs OpenTofu 1.11 or Terraform 1.11.",
				ElementType: types.StringType,
				Optional:    true,
				WriteOnly:   true,
				Validators:  []validator.Map{mapvalidator.NoNullValues(), mapvalidator.KeysAre(envNameRule)},
			},
			"secrets_wo_version": schema.StringAttribute{
				MarkdownDescription: "Any text; a new one runs the playbook again, with `secrets_wo` as it is then. Default: none.",
				Optional:            true,
			},
			"triggers": schema.MapAttribute{
				MarkdownDescription: "Any texts; a change runs the playbook again. Default: none.",
				ElementType:         types.StringType,
				Optional:            true,
				Validators:          []validator.Map{mapvalidator.NoNullValues()},
			},
			"destroy_playbook": schema.StringAttribute{
				MarkdownDescription: "Path of a playbook that is run on the hosts before the resource is destroyed, taken as `playbook` is, when it is destroyed. " +
					"It runs once, with `vars` and `ssh_identities`, and only if a chain of the resource ever succeeded; if it fails, so does the destroy. Default: none.",
				Optional:   true,
				Validators: []validator.String{pathRule},
			},
			"timeouts": timeoutsAttribute(ctx),
			"id": schema.StringAttribute{
				MarkdownDescription: "The name of the workspace.",
				Computed:            true,
			},
			"run_id": schema.StringAttribute{
				MarkdownDescription: "Id of the run that did the work, for `exocomp provision status` and `logs`. Null while there is none.",
				Computed:            true,
			},
			"status": schema.StringAttribute{
				MarkdownDescription: "State of that run: `queued`, `running`, `awaiting-approval`, `succeeded`, `failed` or `cancelled`; " +
					"`pending` where an interrupted apply left none. Unless it is `succeeded`, the next plan shows an update in place that takes the run up.",
				Computed: true,
			},
			"playbook_digest": schema.StringAttribute{
				MarkdownDescription: "Digest of the tree of `playbook`, and of that of `onboard_playbook` together with it where there is one, as the run has them: `sha256:` and 64 hex digits. " +
					"It changes with names, contents and the executable bit of files, and with nothing else.",
				Computed: true,
			},
			"steps": schema.ListNestedAttribute{
				MarkdownDescription: "The steps of the run, in order.",
				Computed:            true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"kind": schema.StringAttribute{
						MarkdownDescription: "`tofu-apply`, `ssh-wait`, `host-onboard` or `ansible-play`.", Computed: true},
					"state": schema.StringAttribute{
						MarkdownDescription: "`blocked`, `awaiting-approval`, `ready`, `running`, `succeeded`, `failed` or `cancelled`.", Computed: true},
					"message": schema.StringAttribute{
						MarkdownDescription: "Why it failed, else what it did; empty before.", Computed: true},
				}},
			},
			"hosts": schema.MapNestedAttribute{
				MarkdownDescription: "The hosts that the run's steps have reported, by name. Never their variables.",
				Computed:            true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"address": schema.StringAttribute{
						MarkdownDescription: "Address as dialled; null for a local host.", Computed: true},
					"port": schema.Int64Attribute{
						MarkdownDescription: "TCP port of SSH as dialled; null for a local host.", Computed: true},
					"state": schema.StringAttribute{
						MarkdownDescription: "How the host fared in the newest step that reported it: `ok`, `changed`, `failed`, `unreachable`, `skipped`, `waiting`, `ready` or `pinned`.", Computed: true},
				}},
			},
		},
	}
}

// timeoutsAttribute is that of the timeouts package, with a description, which
// the package has no option for.
func timeoutsAttribute(ctx context.Context) schema.Attribute {
	const goesOn = " When it has passed, the apply fails and the run goes on; the next apply takes it up."
	a, ok := timeouts.Attributes(ctx, timeouts.Opts{
		Create: true, Update: true, Delete: true,
		CreateDescription: "How long creating may take, as a duration (`90m`). Default: `1h`." + goesOn,
		UpdateDescription: "How long updating may take, as a duration (`90m`). Default: `1h`." + goesOn,
		DeleteDescription: "How long destroying may take, the leave play included, as a duration (`90m`). Default: `30m`.",
	}).(schema.SingleNestedAttribute)
	if !ok {
		panic("timeouts.Attributes is no single nested attribute")
	}
	a.MarkdownDescription = "How long this resource's operations wait for the daemon."
	return a
}
