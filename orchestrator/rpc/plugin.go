package rpc

import (
	"context"
	"runtime"

	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"
)

// pluginName is the name under which the contract is dispensed.
const pluginName = "exocomp"

// handshakeConfig names the contract to go-plugin. The cookie is no secret: it
// tells a person who starts the wrong program by hand so.
var handshakeConfig = plugin.HandshakeConfig{
	ProtocolVersion:  ContractVersion,
	MagicCookieKey:   "EXOCOMP_CONTRACT",
	MagicCookieValue: "exocomp.v1",
}

// versionedPlugins returns the plugin sets by contract version. register is
// nil at a client.
func versionedPlugins(register func(grpc.ServiceRegistrar)) map[int]plugin.PluginSet {
	return map[int]plugin.PluginSet{
		ContractVersion: {pluginName: contract{register: register}},
	}
}

// contract is version 1 of the contract as a go-plugin plugin.
type contract struct {
	plugin.NetRPCUnsupportedPlugin
	register func(grpc.ServiceRegistrar)
}

// GRPCServer implements [plugin.GRPCPlugin].
func (c contract) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	c.register(s)
	return nil
}

// GRPCClient implements [plugin.GRPCPlugin]; it returns a *stubs.
func (contract) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return &stubs{
		daemon:      exocompv1.NewDaemonServiceClient(conn),
		workspaces:  exocompv1.NewWorkspaceServiceClient(conn),
		runs:        exocompv1.NewRunServiceClient(conn),
		provisions:  exocompv1.NewProvisionServiceClient(conn),
		playbooks:   exocompv1.NewPlaybookServiceClient(conn),
		jobs:        exocompv1.NewJobServiceClient(conn),
		inventories: exocompv1.NewInventoryServiceClient(conn),
		hosts:       exocompv1.NewHostServiceClient(conn),
		snapshots:   exocompv1.NewSnapshotServiceClient(conn),
		schedules:   exocompv1.NewScheduleServiceClient(conn),
		events:      exocompv1.NewEventServiceClient(conn),
	}, nil
}

// stubs are the generated clients over one connection.
type stubs struct {
	daemon      exocompv1.DaemonServiceClient
	workspaces  exocompv1.WorkspaceServiceClient
	runs        exocompv1.RunServiceClient
	provisions  exocompv1.ProvisionServiceClient
	playbooks   exocompv1.PlaybookServiceClient
	jobs        exocompv1.JobServiceClient
	inventories exocompv1.InventoryServiceClient
	hosts       exocompv1.HostServiceClient
	snapshots   exocompv1.SnapshotServiceClient
	schedules   exocompv1.ScheduleServiceClient
	events      exocompv1.EventServiceClient
}

// silence stands for the daemon's standard output and error, which go-plugin
// would forward. It yields nothing and, above all, no end: at one, go-plugin
// logs through a logger that it sets only in its own Serve, and panics. Closing
// done ends the goroutine that reads it instead.
type silence struct{ done chan struct{} }

func (s silence) Read([]byte) (int, error) {
	<-s.done
	runtime.Goexit()
	return 0, nil
}

// attachment is what go-plugin holds instead of a child process: the daemon is
// not ours, so killing it reaches nothing. Closing done ends the goroutine that
// waits for the "process".
type attachment struct{ done chan struct{} }

var _ runner.AttachedRunner = attachment{}

func (a attachment) Wait(ctx context.Context) error {
	select {
	case <-a.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (attachment) Kill(context.Context) error { return nil }

func (attachment) ID() string { return pluginName }

func (attachment) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

func (attachment) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
