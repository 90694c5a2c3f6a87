package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// fleetKeyDataSource is exocomp_fleet_key: the public half of the key with which
// the daemon logs in.
type fleetKeyDataSource struct{ daemon *daemon }

var _ datasource.DataSourceWithConfigure = (*fleetKeyDataSource)(nil)

func newFleetKeyDataSource() datasource.DataSource { return &fleetKeyDataSource{} }

type fleetKeyModel struct {
	PublicKey types.String `tfsdk:"public_key"`
}

func (d *fleetKeyDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_fleet_key"
}

func (d *fleetKeyDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The public half of the fleet key, with which the daemon logs in to hosts that it has onboarded. " +
			"A machine that gets it at first boot, say by cloud-init, can be onboarded with no other credential.\n\n" +
			"Reading it needs the daemon, at plan too. A rotated fleet key changes user data, and with it replaces machines: " +
			"let them ignore changes of their user data, as the example does.",
		Attributes: map[string]schema.Attribute{
			"public_key": schema.StringAttribute{
				MarkdownDescription: "The key as a line of `authorized_keys`: type, base64 and comment.",
				Computed:            true,
			},
		},
	}
}

func (d *fleetKeyDataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.daemon = daemonOf(req.ProviderData, &resp.Diagnostics)
}

func (d *fleetKeyDataSource) Read(ctx context.Context, _ datasource.ReadRequest, resp *datasource.ReadResponse) {
	var key string
	err := d.daemon.with(ctx, func(c *rpc.Client) (err error) {
		key, err = c.GetFleetKey(ctx)
		return err
	})
	if err != nil {
		resp.Diagnostics.AddError("The fleet key cannot be read", explain(err))
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, fleetKeyModel{PublicKey: types.StringValue(key)})...)
}
