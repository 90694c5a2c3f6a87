package script

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/exocomp/exocomp/orchestrator/rpc/rpctest"
)

// outcome is how a call ended.
type outcome struct {
	code        int
	stdout, err string
}

func run(t *testing.T, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := Run(t.Context(), args, &stdout, &stderr, rpctest.Version)
	return outcome{code, stdout.String(), stderr.String()}
}

// serve makes a daemon with inventories, for the environment to name.
func serve(t *testing.T, trees map[string]string) *rpctest.Service {
	t.Helper()
	svc := rpctest.NewService()
	for workspace, tree := range trees {
		v, _ := view(t, workspace, tree)
		svc.Inventories[workspace] = v
	}
	t.Setenv(rpc.SocketEnv, rpctest.Serve(t, svc).Socket)
	t.Setenv(rpc.TokenFileEnv, "")
	t.Setenv(InventoryEnv, "")
	return svc
}

const (
	web = `{"all":{"hosts":{"web1":{"ansible_host":"192.0.2.1","motd":"{{ 1 + 1 }}"}},"vars":{"x":"edge"}}}`
	db  = `{"all":{"hosts":{"db1":{}},"vars":{"x":"prod"}}}`
)

func TestListAndHost(t *testing.T) {
	serve(t, map[string]string{"edge": web, "prod": db})
	edge := link(t, t.TempDir(), "tf:edge")
	var list struct {
		Meta struct{ HostVars map[string]map[string]any } `json:"_meta"`
		Edge struct{ Hosts []string }
		Tf   struct{ Hosts []string }
		Prod any
	}
	got := run(t, edge, "--list")
	if err := json.Unmarshal([]byte(got.stdout), &list); err != nil || got.code != 0 || got.err != "" {
		t.Fatalf("%v: %+v", err, got)
	}
	motd, _ := list.Meta.HostVars["web1"]["motd"].(map[string]any)
	if len(list.Edge.Hosts) != 1 || list.Tf.Hosts == nil || list.Prod != nil || motd["__ansible_unsafe"] != "{{ 1 + 1 }}" {
		t.Errorf("%s", got.stdout)
	}
	host := run(t, edge, "--host", "web1")
	if host.code != 0 || host.err != "" || host.stdout != `{"ansible_host": "192.0.2.1", "motd": {"__ansible_unsafe": "{{ 1 + 1 }}"}}`+"\n" {
		t.Errorf("%+v", host)
	}
	t.Setenv(InventoryEnv, "tf:prod")
	if got := run(t, "exocomp-inventory", "--list"); !strings.Contains(got.stdout, `"prod": {"hosts": ["db1"]}`) {
		t.Errorf("by the environment: %+v", got)
	}
	t.Setenv(InventoryEnv, "")
	merged := run(t, "exocomp-inventory", "--list")
	for _, part := range []string{`"edge": {"hosts": ["web1"]}`, `"prod": {"hosts": ["db1"]}`, `"db1": {"x": "prod"}`} {
		if merged.code != 0 || merged.err != "" || !strings.Contains(merged.stdout, part) {
			t.Errorf("merged: %+v, want %s", merged, part)
		}
	}
}

// TestReaderTokenIsEnough: Ansible's user need not be an operator.
func TestReaderTokenIsEnough(t *testing.T) {
	serve(t, map[string]string{"edge": web})
	t.Setenv(rpc.TokenFileEnv, filepath.Join(filepath.Dir(os.Getenv(rpc.SocketEnv)), rpc.ReaderTokenFile))
	if got := run(t, "exocomp-inventory", "--list"); got.code != 0 {
		t.Errorf("%+v", got)
	}
}

// TestFailsClosed: nothing on standard output, one line on the other, which says
// what is wrong and what to type next. What the daemon says is the daemon's.
func TestFailsClosed(t *testing.T) {
	serving := func(change func(svc *rpctest.Service)) func(*testing.T) {
		return func(t *testing.T) {
			svc := serve(t, map[string]string{"edge": web, "prod": db})
			if change != nil {
				change(svc)
			}
		}
	}
	published := func(s rpc.PublishedState) func(*testing.T) {
		return serving(func(svc *rpctest.Service) {
			v := svc.Inventories["edge"]
			v.Published = s
			svc.Inventories["edge"] = v
		})
	}
	becomes := func(workspace, tree string) func(*testing.T) {
		return func(t *testing.T) { serve(t, map[string]string{"edge": web, workspace: tree}) }
	}
	for name, c := range map[string]struct {
		given func(t *testing.T)
		env   string
		args  []string
		code  int
		want  []string
	}{
		"unknown":         {serving(nil), "tf:nope", []string{"--list"}, 1, []string{"tf:nope"}},
		"lost":            {published(rpc.PublishedMissing), "tf:edge", []string{"--list"}, 1, []string{"tf:edge missing"}},
		"tampered":        {published(rpc.PublishedDiffers), "tf:edge", []string{"--list"}, 1, []string{"tf:edge differs"}},
		"of no state":     {published(""), "tf:edge", []string{"--list"}, 1, []string{"the file of tf:edge"}},
		"lost, of all":    {published(rpc.PublishedMissing), "", []string{"--list"}, 1, []string{"tf:edge missing"}},
		"hostless":        {becomes("edge", `{"all":{}}`), "tf:edge", []string{"--list"}, 1, []string{"tf:edge names no hosts"}},
		"hostless, host":  {becomes("edge", `{"all":{}}`), "edge", []string{"--host", "web1"}, 1, []string{"tf:edge names no hosts"}},
		"hostless of all": {becomes("prod", `{"all":{}}`), "", []string{"--list"}, 1, []string{"tf:prod names no hosts"}},
		"clash":           {becomes("prod", web), "", []string{"--list"}, 1, []string{"tf:edge and tf:prod both have a host called web1", "EXOCOMP_INVENTORY=tf:edge"}},
		"none":            {func(t *testing.T) { serve(t, nil) }, "", []string{"--list"}, 1, []string{"no inventory yet", "workspace apply"}},
		"a host":          {serving(nil), "tf:edge", []string{"--host", "db1"}, 1, []string{"no host is called db1"}},
		"no daemon": {func(t *testing.T) { t.Setenv(rpc.SocketEnv, filepath.Join(t.TempDir(), "x.sock")) }, "tf:edge", []string{"--list"}, 1,
			[]string{"no daemon", "exocomp serve"}},
		"no token":        {func(t *testing.T) { serve(t, nil); t.Setenv(rpc.TokenFileEnv, "/nope") }, "tf:edge", []string{"--list"}, 1, []string{"no token", "/nope"}},
		"a bad name":      {serving(nil), "tf:all", []string{"--list"}, 1, []string{"EXOCOMP_INVENTORY=tf:all", "reserved"}},
		"odd name":        {serving(nil), "tf:\x1b[31m\n", []string{"--list"}, 1, []string{"not allowed"}},
		"nothing asked":   {serving(nil), "tf:edge", nil, 2, []string{"--list and --host", "--help"}},
		"both asked":      {serving(nil), "tf:edge", []string{"--list", "--host", "web1"}, 2, []string{"--list and --host"}},
		"an argument":     {serving(nil), "tf:edge", []string{"--list", "web1"}, 2, []string{`"web1"`}},
		"an unknown flag": {serving(nil), "tf:edge", []string{"--graph"}, 2, []string{"graph"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.given(t)
			t.Setenv(InventoryEnv, c.env)
			got := run(t, append([]string{"exocomp-inventory"}, c.args...)...)
			if got.code != c.code || got.stdout != "" || strings.Count(got.err, "\n") != 1 || !strings.HasPrefix(got.err, "exocomp-inventory: ") {
				t.Errorf("%+v, want code %d and one line", got, c.code)
			}
			for _, part := range c.want {
				if !strings.Contains(got.err, part) {
					t.Errorf("%q lacks %q", got.err, part)
				}
			}
			if strings.Contains(got.err, "\x1b") {
				t.Errorf("%q does something to a terminal", got.err)
			}
		})
	}
}

func TestHelpAndVersion(t *testing.T) {
	if got := run(t, "exocomp-inventory", "--help"); got.code != 0 || got.err != "" || !strings.Contains(got.stdout, InventoryEnv) || !strings.Contains(got.stdout, "exocomp inventory link") {
		t.Errorf("%+v", got)
	}
	if got := run(t, "exocomp-inventory", "--version"); got.code != 0 || !strings.Contains(got.stdout, rpctest.Version) {
		t.Errorf("%+v", got)
	}
}

// TestConfigured: which inventory is meant, by the environment and by the links on
// the way to the executable.
func TestConfigured(t *testing.T) {
	dir := t.TempDir()
	link(t, dir, "plain")
	link(t, dir, "tf:edge")
	link(t, dir, "tf:localhost")
	for name, target := range map[string]string{
		"exocomp-inventory": "tf:edge", "relative": "../" + filepath.Base(dir) + "/exocomp-inventory", "absolute": filepath.Join(dir, "tf:edge"), "loop": "loop", "dangling": "nowhere",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	for _, c := range []struct{ env, as, want, err string }{
		{"", dir + "/plain", "", ""},
		{"", dir + "/tf:edge", "edge", ""},
		{"", dir + "/exocomp-inventory", "edge", ""},
		{"", "exocomp-inventory", "edge", ""}, // from PATH
		{"", dir + "/relative", "edge", ""},
		{"", dir + "/absolute", "edge", ""},
		{"", dir + "/loop", "", ""},
		{"", dir + "/dangling", "", ""},
		{"", "not-in-path", "", ""},
		{"tf:prod", dir + "/plain", "prod", ""},
		{"prod", dir + "/plain", "prod", ""},
		{"edge", dir + "/exocomp-inventory", "edge", ""},
		{"tf:prod", dir + "/exocomp-inventory", "", "exocomp-inventory is called as tf:edge, but EXOCOMP_INVENTORY=tf:prod; unset EXOCOMP_INVENTORY"},
		{"", dir + "/tf:localhost", "", "called as tf:localhost"},
		{"tf:", dir + "/plain", "", "empty"},
		{"we b", dir + "/plain", "", "not allowed"},
	} {
		got, err := configured(c.env, c.as)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
		if err != nil && orchestrator.CodeOf(err) != orchestrator.CodeInvalid {
			t.Errorf("%+v: code %s", c, orchestrator.CodeOf(err))
		}
	}
}
