package provider

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// TestTheLimitOfADeleteCoversTheUpload holds that a daemon which does not take the
// leave play does not outlast the time that the delete was given.
func TestTheLimitOfADeleteCoversTheUpload(t *testing.T) {
	t.Parallel()
	fake := newFakeDaemon(t)
	fake.set(func() { fake.mute = true })
	leave := filepath.Join(t.TempDir(), "leave.yml")
	if err := os.WriteFile(leave, []byte("- hosts: all\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Without the limit it is the test that ends the delete, which is called so.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	e := &ending{daemon: &daemon{options: rpc.ClientOptions{Socket: fake.server.Socket, Version: "test"}}, limit: 100 * time.Millisecond}
	state := &provisionModel{
		Workspace: types.StringValue("edge"), DestroyPlaybook: types.StringValue(leave),
		Vars: types.DynamicNull(), SSHIdentities: types.ListNull(types.StringType),
	}
	var diags diag.Diagnostics
	e.end(ctx, state, &diags)
	if len(diags) != 1 || !strings.Contains(diags[0].Summary(), "was not given back within 100ms") {
		t.Errorf("%v, want that the time was over", diags)
	}
}
