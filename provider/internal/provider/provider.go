// Package provider is the OpenTofu provider of exocomp, on the plugin framework
// and protocol 6: the resource exocomp_provision and the data source
// exocomp_fleet_key. It is a client of the daemon, which it calls for each
// operation anew, and has no state but what OpenTofu keeps for it.
package provider

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// Address is where the provider is found in a registry.
const Address = "registry.opentofu.org/exocomp/exocomp"

// New returns what makes a provider of a release.
func New(version string) func() provider.Provider {
	return func() provider.Provider { return &exocompProvider{version: version, patience: patience} }
}

type exocompProvider struct {
	version  string
	patience time.Duration // with a daemon that is away
}

type exocompProviderModel struct {
	Socket    types.String `tfsdk:"socket"`
	TokenFile types.String `tfsdk:"token_file"`
}

func (p *exocompProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "exocomp"
	resp.Version = p.version
}

func (p *exocompProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The exocomp provider lets one `tofu apply` create machines and have them waited for, pinned, onboarded " +
			"and configured by the exocomp daemon, with the result in plan and state.\n\n" +
			"It talks to the daemon over a unix socket on the machine on which OpenTofu runs " +
			"(from another one: `ssh -L /tmp/exocomp.sock:/run/exocomp/exocomp.sock HOST`, and a copy of the token). " +
			"The daemon is needed to apply; plans and refreshes do without it.",
		Attributes: map[string]schema.Attribute{
			"socket": schema.StringAttribute{
				MarkdownDescription: "Path of the daemon's unix socket. Default: `EXOCOMP_SOCKET` of the environment, " +
					"else the socket of the user's own daemon (`$XDG_RUNTIME_DIR/exocomp/exocomp.sock`), else `/run/exocomp/exocomp.sock`.",
				Optional: true,
			},
			"token_file": schema.StringAttribute{
				MarkdownDescription: "Path of the file with the daemon's token. Default: `EXOCOMP_TOKEN_FILE` of the environment, " +
					"else `operator.token` beside the socket.",
				Optional: true,
			},
		},
	}
}

// Configure only notes where the daemon is: it may be started later, or not be
// needed at all.
func (p *exocompProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var config exocompProviderModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	d := &daemon{
		options: rpc.ClientOptions{
			Socket: config.Socket.ValueString(), TokenFile: config.TokenFile.ValueString(), Version: p.version,
		},
		unknown:  config.Socket.IsUnknown() || config.TokenFile.IsUnknown(),
		patience: p.patience,
	}
	resp.ResourceData, resp.DataSourceData = d, d
}

func (p *exocompProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{newProvisionResource}
}

func (p *exocompProvider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{newFleetKeyDataSource}
}
