package provider

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/exocomp/exocomp/orchestrator"
)

// protocol calls a provider's server as OpenTofu does, without one.
type protocol struct {
	t        testing.TB
	daemon   *fakeDaemon
	typ      tftypes.Object
	playbook string
}

func newProtocol(t testing.TB) *protocol {
	t.Helper()
	p := &protocol{t: t, daemon: newFakeDaemon(t), playbook: filepath.Join(t.TempDir(), "site.yml")}
	if err := os.WriteFile(p.playbook, []byte("- hosts: all\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	schema, err := newServer(New("test")()).GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	typ, ok := schema.ResourceSchemas[provisionType].ValueType().(tftypes.Object)
	if !ok {
		t.Fatal("the schema is no object")
	}
	p.typ = typ
	return p
}

// value is an object of the resource's type: null where nothing is set.
func (p *protocol) value(set obj) tftypes.Value {
	all := obj{}
	for name, typ := range p.typ.AttributeTypes {
		all[name] = tftypes.NewValue(typ, nil)
	}
	maps.Copy(all, set)
	return tftypes.NewValue(p.typ, all)
}

func (p *protocol) pack(v tftypes.Value) *tfprotov6.DynamicValue {
	p.t.Helper()
	d, err := tfprotov6.NewDynamicValue(p.typ, v)
	if err != nil {
		p.t.Fatal(err)
	}
	return &d
}

func (p *protocol) unpack(d *tfprotov6.DynamicValue) tftypes.Value {
	p.t.Helper()
	v, err := d.Unmarshal(p.typ)
	if err != nil {
		p.t.Fatal(err)
	}
	return v
}

// configured is a server that knows the daemon.
func (p *protocol) configured(s tfprotov6.ProviderServer) tfprotov6.ProviderServer {
	p.t.Helper()
	settings := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"socket": tftypes.String, "token_file": tftypes.String}}
	config, err := tfprotov6.NewDynamicValue(settings, tftypes.NewValue(settings, obj{
		"socket": text(p.daemon.server.Socket), "token_file": tftypes.NewValue(tftypes.String, nil)}))
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := s.ConfigureProvider(p.t.Context(), &tfprotov6.ConfigureProviderRequest{Config: &config}); err != nil {
		p.t.Fatal(err)
	}
	return s
}

// inputs are what a person writes, of n hosts.
func (p *protocol) inputs(n int) obj {
	hosts := obj{}
	for i := range n {
		hosts[fmt.Sprintf("web%04d", i)] = object(obj{
			"ansible_host": text(fmt.Sprintf("192.0.2.%d", i)), "rack": number(p.t.(*testing.T), "0.1"),
			"labels": tuple(text("a"), tftypes.NewValue(tftypes.DynamicPseudoType, nil)),
		})
	}
	return obj{"workspace": text("edge"), "playbook": text(p.playbook), "ssh_wait": text("5m"), "inventory": object(hosts)}
}

// settled is the state after an apply of the inputs has succeeded.
func (p *protocol) settled(inputs obj) obj {
	p.t.Helper()
	digest, err := treeDigest(p.t.Context(), p.playbook)
	if err != nil {
		p.t.Fatal(err)
	}
	in, _ := members(inputs["inventory"])
	host := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"address": tftypes.String, "port": tftypes.Number, "state": tftypes.String}}
	hosts := obj{}
	for name := range in {
		hosts[name] = tftypes.NewValue(host, obj{"address": text("192.0.2.1"), "port": number(p.t.(*testing.T), "22"), "state": text("ok")})
	}
	s := obj{
		"id": text("edge"), "run_id": text(digits(1)), "status": text("succeeded"), "playbook_digest": text(digest),
		"steps": tftypes.NewValue(p.typ.AttributeTypes["steps"], []tftypes.Value{}),
		"hosts": tftypes.NewValue(p.typ.AttributeTypes["hosts"], hosts),
	}
	maps.Copy(s, inputs)
	return s
}

// and returns a copy of v with other values in it.
func and(v, more obj) obj {
	c := maps.Clone(v)
	maps.Copy(c, more)
	return c
}

// TestAPlanIsWhatTheFrameworkMakesOfIt holds that no plan shows what the server
// keeps from the framework: it is the same without.
func TestAPlanIsWhatTheFrameworkMakesOfIt(t *testing.T) {
	p := newProtocol(t)
	in := p.inputs(3)
	state := p.settled(in)
	unknown := tftypes.NewValue(tftypes.DynamicPseudoType, tftypes.UnknownValue)
	null := tftypes.NewValue(tftypes.DynamicPseudoType, nil)
	leaf := obj{"inventory": object(obj{"web1": object(obj{"ansible_host": tftypes.NewValue(tftypes.String, tftypes.UnknownValue)})})}
	computed := obj{}
	for _, name := range []string{"id", "run_id", "status", "playbook_digest", "steps", "hosts"} {
		computed[name] = tftypes.NewValue(p.typ.AttributeTypes[name], tftypes.UnknownValue)
	}
	nothing := tftypes.NewValue(p.typ, nil)
	imported := obj{"id": text("edge"), "workspace": text("edge")}
	outputs := func(state obj) obj {
		kept := obj{"ssh_wait": state["ssh_wait"]}
		for name := range computed {
			kept[name] = state[name]
		}
		return kept
	}
	for name, c := range map[string]struct {
		prior  tftypes.Value
		config obj // nil is a destroy
		kept   obj // of the prior state, in what OpenTofu proposes
	}{
		"create":                    {prior: nothing, config: in, kept: computed},
		"create, unknown":           {prior: nothing, config: and(in, obj{"inventory": unknown}), kept: computed},
		"create, a leaf is unknown": {prior: nothing, config: and(in, leaf), kept: computed},
		"create, registered":        {prior: nothing, config: and(in, obj{"inventory": null}), kept: computed},
		"unchanged":                 {prior: p.value(state), config: in, kept: outputs(state)},
		"unchanged, registered":     {prior: p.value(and(state, obj{"inventory": null})), config: and(in, obj{"inventory": null}), kept: outputs(state)},
		"as long in other words":    {prior: p.value(state), config: and(in, obj{"ssh_wait": text("300s")}), kept: outputs(state)},
		"the default":               {prior: p.value(state), config: and(in, obj{"ssh_wait": tftypes.NewValue(tftypes.String, nil)}), kept: outputs(state)},
		"other hosts":               {prior: p.value(state), config: and(in, p.inputs(4)), kept: outputs(state)},
		"hosts taken away":          {prior: p.value(state), config: and(in, obj{"inventory": null}), kept: outputs(state)},
		"a leaf becomes unknown":    {prior: p.value(state), config: and(in, leaf), kept: outputs(state)},
		"other variables":           {prior: p.value(state), config: and(in, obj{"vars": object(obj{"a": text("b")})}), kept: outputs(state)},
		"other workspace":           {prior: p.value(state), config: and(in, obj{"workspace": text("core")}), kept: outputs(state)},
		"no playbook":               {prior: p.value(state), config: and(in, obj{"playbook": text("/nowhere/site.yml")}), kept: outputs(state)},
		"failed before":             {prior: p.value(and(state, obj{"status": text("failed")})), config: in, kept: and(outputs(state), obj{"status": text("failed")})},
		"imported":                  {prior: p.value(imported), config: in, kept: imported},
		"destroy":                   {prior: p.value(state)},
	} {
		t.Run(name, func(t *testing.T) {
			req := tfprotov6.PlanResourceChangeRequest{
				TypeName: provisionType, PriorState: p.pack(c.prior), Config: p.pack(nothing), ProposedNewState: p.pack(nothing),
			}
			if c.config != nil {
				req.Config = p.pack(p.value(c.config))
				proposed := maps.Clone(c.config)
				for name, value := range c.kept {
					if in, written := proposed[name]; !written || name == "ssh_wait" && in.IsNull() {
						proposed[name] = value
					}
				}
				req.ProposedNewState = p.pack(p.value(proposed))
			}
			want, err := providerserver.NewProtocol6(New("test")())().PlanResourceChange(t.Context(), &req)
			if err != nil {
				t.Fatal(err)
			}
			got, err := newServer(New("test")()).PlanResourceChange(t.Context(), &req)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(p.unpack(want.PlannedState).String(), p.unpack(got.PlannedState).String()); diff != "" {
				t.Errorf("the plan differs (-framework +server):\n%s", diff)
			}
			want.PlannedState, got.PlannedState = nil, nil
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("what is said differs (-framework +server):\n%s", diff)
			}
		})
	}
}

// TestARefreshIsWhatTheFrameworkMakesOfIt holds the same of a refresh.
func TestARefreshIsWhatTheFrameworkMakesOfIt(t *testing.T) {
	p := newProtocol(t)
	in := p.inputs(3)
	state := p.settled(in)
	add := func(state orchestrator.RunState) {
		p.daemon.set(func() {
			r := p.daemon.add("edge", orchestrator.RunSpec{})
			r.State = state
			r.Steps[0].Report = &orchestrator.Report{Hosts: []orchestrator.HostReport{{Name: "web7", Address: "192.0.2.7:22", State: orchestrator.HostOK}}}
		})
	}
	add(orchestrator.RunSucceeded)
	add(orchestrator.RunFailed)
	for name, state := range map[string]obj{
		"succeeded":       state,
		"failed since":    and(state, obj{"run_id": text(digits(2)), "status": text("running")}),
		"succeeded since": and(state, obj{"status": text("running")}),
		"unknown run":     and(state, obj{"run_id": text(digits(7))}),
	} {
		t.Run(name, func(t *testing.T) {
			req := tfprotov6.ReadResourceRequest{TypeName: provisionType, CurrentState: p.pack(p.value(state))}
			want, err := p.configured(providerserver.NewProtocol6(New("test")())()).ReadResource(t.Context(), &req)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.configured(newServer(New("test")())).ReadResource(t.Context(), &req)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(p.unpack(want.NewState).String(), p.unpack(got.NewState).String()); diff != "" {
				t.Errorf("the state differs (-framework +server):\n%s", diff)
			}
			if diff := cmp.Diff(want.Diagnostics, got.Diagnostics); diff != "" {
				t.Errorf("what is said differs (-framework +server):\n%s", diff)
			}
		})
	}
}

// TestTheStateIsPassedOnAsTheFrameworkWouldRead holds that a state of the schema's
// version means to OpenTofu what the framework would have made of it.
func TestTheStateIsPassedOnAsTheFrameworkWouldRead(t *testing.T) {
	p := newProtocol(t)
	const state = `{"id":"edge","workspace":"edge","playbook":"site.yml","ssh_wait":"5m","status":"succeeded",` +
		`"inventory":{"type":["object",{"web1":["object",{"ansible_host":"string","weight":"number"}]}],` +
		`"value":{"web1":{"ansible_host":"192.0.2.11","weight":0.1}}},` +
		`"hosts":{"web1":{"address":"192.0.2.11","port":22,"state":"ok"}},"steps":[],"triggers":{"a":"b"}%s}`
	nulls := ""
	for name := range p.typ.AttributeTypes {
		if !strings.Contains(state, `"`+name+`"`) {
			nulls += fmt.Sprintf(`,%q:null`, name)
		}
	}
	req := tfprotov6.UpgradeResourceStateRequest{
		TypeName: provisionType, RawState: &tfprotov6.RawState{JSON: fmt.Appendf(nil, state, nulls)},
	}
	want, err := providerserver.NewProtocol6(New("test")())().UpgradeResourceState(t.Context(), &req)
	if err != nil || len(want.Diagnostics) > 0 {
		t.Fatal(want.Diagnostics, err)
	}
	got, err := newServer(New("test")()).UpgradeResourceState(t.Context(), &req)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p.unpack(want.UpgradedState).String(), p.unpack(got.UpgradedState).String()); diff != "" {
		t.Errorf("the state differs (-framework +server):\n%s", diff)
	}
	req.Version = provisionVersion + 1 // of a newer release
	if got, err := newServer(New("test")()).UpgradeResourceState(t.Context(), &req); err != nil || len(got.Diagnostics) == 0 {
		t.Errorf("a newer state: %v, %v", got, err)
	}
}

// TestAPlanOfManyHostsIsAsCheapAsOfFew counts what a plan allocates, which no
// other load of the machine changes. With the framework alone ten times the hosts
// take ten times as much, and with its log on a hundred times.
func TestAPlanOfManyHostsIsAsCheapAsOfFew(t *testing.T) {
	p := newProtocol(t)
	server := newServer(New("test")())
	allocations := func(hosts int) uint64 {
		in := p.inputs(hosts)
		state := p.settled(in)
		changed := and(state, obj{"vars": object(obj{"a": text("b")})})
		req := tfprotov6.PlanResourceChangeRequest{
			TypeName: provisionType, PriorState: p.pack(p.value(state)),
			Config: p.pack(p.value(and(in, obj{"vars": changed["vars"]}))), ProposedNewState: p.pack(p.value(changed)),
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if resp, err := server.PlanResourceChange(context.Background(), &req); err != nil || len(resp.Diagnostics) > 0 {
			t.Fatal(resp, err)
		}
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs
	}
	allocations(1) // what is made once
	few, many := allocations(100), allocations(1000)
	t.Logf("100 hosts: %d, 1,000 hosts: %d", few, many)
	if many > few*3/2 {
		t.Errorf("a plan of 1,000 hosts allocates %d times, one of 100 hosts %d times", many, few)
	}
}
