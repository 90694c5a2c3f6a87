package provider

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// opaqueServer keeps from the framework what a refresh and a plan only compare
// and pass on: the inventory and the hosts. The framework walks every leaf of a
// value a dozen times, which was two thirds of the processor time of a plan with
// a thousand hosts (framework 1.19). Here a stand-in takes the place of each on
// the way in, and the value that it stands for comes back on the way out, byte
// for byte. Validation and applies see the values themselves.
type opaqueServer struct{ tfprotov6.ProviderServer }

// newServer returns a provider as protocol 6 serves it.
func newServer(p provider.Provider) tfprotov6.ProviderServer {
	return opaqueServer{providerserver.NewProtocol6(p)()}
}

// UpgradeResourceState passes on the state of the schema's own version as it is:
// OpenTofu takes it in the form in which it keeps it, and drops what the schema
// does not know.
func (s opaqueServer) UpgradeResourceState(ctx context.Context, req *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	if req.TypeName == provisionType && req.Version == provisionVersion && req.RawState != nil && len(req.RawState.JSON) > 0 {
		return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: &tfprotov6.DynamicValue{JSON: req.RawState.JSON}}, nil
	}
	return s.ProviderServer.UpgradeResourceState(ctx, req)
}

// ReadResource implements [tfprotov6.ProviderServer].
func (s opaqueServer) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	if req.TypeName != provisionType {
		return s.ProviderServer.ReadResource(ctx, req)
	}
	var o opaque
	seen := *req
	seen.CurrentState = o.hide(req.CurrentState)
	resp, err := s.ProviderServer.ReadResource(ctx, &seen)
	if resp != nil {
		resp.NewState = o.show(resp.NewState)
	}
	return resp, err
}

// PlanResourceChange implements [tfprotov6.ProviderServer].
func (s opaqueServer) PlanResourceChange(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	if req.TypeName != provisionType {
		return s.ProviderServer.PlanResourceChange(ctx, req)
	}
	var o opaque
	seen := *req
	seen.Config = o.hide(req.Config)
	seen.ProposedNewState = o.hide(req.ProposedNewState)
	seen.PriorState = o.hide(req.PriorState) // last: its hosts are those that a plan may keep
	resp, err := s.ProviderServer.PlanResourceChange(ctx, &seen)
	if resp != nil {
		resp.PlannedState = o.show(resp.PlannedState)
	}
	return resp, err
}

// opaque knows the values that stand-ins stand for, in one call.
type opaque struct {
	inventories map[string]msgpack.RawMessage // by their stand-ins
	hosts       msgpack.RawMessage            // stood for by null; nil where they were not hidden
}

// hide returns v with the inventory and the hosts replaced. What is null, not
// known, or not of the form that OpenTofu sends stays as it is.
func (o *opaque) hide(v *tfprotov6.DynamicValue) *tfprotov6.DynamicValue {
	return rewrite(v, func(name string, value msgpack.RawMessage) msgpack.RawMessage {
		switch {
		case name == "inventory" && msgpcode.IsFixedArray(value[0]): // of its type and the value
			in := standIn(value)
			if o.inventories == nil {
				o.inventories = map[string]msgpack.RawMessage{}
			}
			o.inventories[string(in)] = value
			return in
		case name == "hosts" && isMap(value[0]):
			o.hosts = value
			return msgpack.RawMessage{msgpcode.Nil}
		}
		return value
	})
}

// show returns v with what hide took away.
func (o *opaque) show(v *tfprotov6.DynamicValue) *tfprotov6.DynamicValue {
	return rewrite(v, func(name string, value msgpack.RawMessage) msgpack.RawMessage {
		if hidden, ok := o.inventories[string(value)]; ok && name == "inventory" {
			return hidden
		}
		if name == "hosts" && value[0] == msgpcode.Nil && o.hosts != nil {
			return o.hosts
		}
		return value
	})
}

// standIn returns a dynamic text that is the same for the same value only:
// OpenTofu writes equal values in the same bytes.
func standIn(value []byte) msgpack.RawMessage {
	sum := sha256.Sum256(value)
	in, err := msgpack.Marshal([]any{[]byte(`"string"`), hex.EncodeToString(sum[:])})
	if err != nil {
		panic(err) // two texts
	}
	return in
}

// rewrite returns an object with its attributes replaced by what fn makes of
// them. What is no object in MessagePack comes back as it was.
func rewrite(v *tfprotov6.DynamicValue, fn func(name string, value msgpack.RawMessage) msgpack.RawMessage) *tfprotov6.DynamicValue {
	if v == nil || len(v.MsgPack) == 0 || !isMap(v.MsgPack[0]) {
		return v
	}
	in := msgpack.NewDecoder(bytes.NewReader(v.MsgPack))
	var buf bytes.Buffer
	out := msgpack.NewEncoder(&buf)
	n, err := in.DecodeMapLen()
	if err != nil || out.EncodeMapLen(n) != nil {
		return v
	}
	for range n {
		name, err := in.DecodeString()
		if err != nil || out.EncodeString(name) != nil {
			return v
		}
		value, err := in.DecodeRaw()
		if err != nil || len(value) == 0 {
			return v
		}
		buf.Write(fn(name, slices.Clone(value)))
	}
	return &tfprotov6.DynamicValue{MsgPack: buf.Bytes()}
}

func isMap(code byte) bool {
	return msgpcode.IsFixedMap(code) || code == msgpcode.Map16 || code == msgpcode.Map32
}
