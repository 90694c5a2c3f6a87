package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
)

// reattached serves a provider in the test's own process until the test ends, and
// returns the setting by which one tofu takes it: that spares the three starts of
// a provider that a command takes, and the race detector sees it.
func reattached(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	server := newServer(&exocompProvider{version: "test", patience: 50 * time.Millisecond})
	configs, closed := make(chan *plugin.ReattachConfig, 1), make(chan struct{})
	go func() {
		// It reports what is wrong by no config.
		_ = tf6server.Serve(Address, func() tfprotov6.ProviderServer { return server },
			tf6server.WithDebug(ctx, configs, closed), tf6server.WithGoPluginLogger(hclog.NewNullLogger()), tf6server.WithLoggingSink(t))
	}()
	t.Cleanup(func() {
		cancel()
		<-closed
	})
	config := <-configs
	setting := map[string]any{
		"Protocol": config.Protocol, "ProtocolVersion": config.ProtocolVersion, "Pid": config.Pid, "Test": config.Test,
		"Addr": map[string]string{"Network": config.Addr.Network(), "String": config.Addr.String()},
	}
	doc, err := json.Marshal(map[string]any{"hashicorp/exocomp": setting, "exocomp/exocomp": setting})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("TF_REATTACH_PROVIDERS=%s", doc)
}
