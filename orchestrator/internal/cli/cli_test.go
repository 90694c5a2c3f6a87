package cli

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/exocomp/exocomp/orchestrator/rpc/rpctest"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outcome is how a command ended.
type outcome struct {
	code     int
	out, err string
}

// run executes a command line against the daemon d, or none for nil.
func run(t *testing.T, d *rpctest.Daemon, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	socket := filepath.Join(t.TempDir(), "none.sock")
	if d != nil {
		socket = d.Socket
	}
	code := Run(t.Context(), append([]string{"--socket", socket}, args...), Stdio{In: strings.NewReader(""), Out: &out, Err: &errs}, rpctest.Version)
	return outcome{code, out.String(), errs.String()}
}

const hostile = "\x1b[31mred\x07"

// chain is a service that holds one failed run of a workspace and what belongs
// to it.
func chain(t *testing.T) (*rpctest.Service, *rpctest.Daemon) {
	t.Helper()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	key := "AAAAC3NzaC1lZDI1NTE5AAAAIGJ1dCBub3QgYSByZWFsIGtleSBhdCBhbGwhISEhISEh"
	config, err := filepath.Abs(filepath.Join("testdata", "exocomp.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	svc := rpctest.NewService()
	svc.Status = rpc.Status{
		Version: rpctest.Version, StartedAt: at, DataDir: "/var/lib/exocomp", ConfigFile: config, Workers: 4,
		Tools:    []rpc.Tool{{Name: "tofu", Path: "/usr/bin/tofu", Version: "1.12.6"}, {Name: "ansible-playbook", Error: "ansible is missing", Hint: "install it"}},
		Warnings: []string{"the runtime directory is not a tmpfs"},
	}
	svc.Inventories["edge"] = rpc.InventoryView{
		Inventory: orchestrator.Inventory{Workspace: "edge", Digest: "sha256:" + strings.Repeat("a", 64), Content: []byte("{}\n"),
			Path: "/var/lib/exocomp/artifacts/inventory/edge.json", Hosts: []string{"web1", "here"}, Captured: 1, UpdatedAt: at},
		Published: rpc.PublishedAgrees,
		Admission: rpc.AdmissionSettings{Run: "run_00000000000000000000000001", SSHWait: orchestrator.DefaultSSHWait, SSHIdentities: []string{"/keys/first"}},
		Hosts: []rpc.InventoryHost{
			{Name: "web1", Address: "2001:db8::1", Port: 2222, User: "root", Connection: "ssh", Groups: []string{"web"}, AdmittedAt: at, Login: orchestrator.LoginAutomation, Fingerprint: "SHA256:abc"},
			{Name: "here", Connection: "local"},
		},
	}
	svc.Pins = []orchestrator.Pin{{
		Host: "192.0.2.1", Port: 2222, KeyType: "ssh-ed25519", Key: key, SHA256: "SHA256:abc",
		Source: orchestrator.PinFirstUse, Users: []orchestrator.PinUser{{Workspace: "edge", Host: "web1"}}, AddedAt: at,
	}}
	svc.FleetKey = "ssh-ed25519 " + key + " exocomp"
	svc.OnboardVars = rpc.OnboardVars{JSON: `{"exocomp_user":"exocomp"}`, Command: []string{"ansible-playbook", "--extra-vars", "it's"}}

	ctx := context.Background()
	if _, err := svc.AddWorkspace(ctx, orchestrator.Workspace{Name: "edge", Dir: "/srv/infra", Approval: orchestrator.ApprovalDestructive}); err != nil {
		t.Fatal(err)
	}
	r, err := svc.SubmitRun(ctx, "", orchestrator.RunProvision, "edge", orchestrator.RunSpec{
		Playbook: orchestrator.PlaybookRef{Path: "/srv/play/site.yml", Entry: "site.yml", Digest: "sha256:" + strings.Repeat("b", 64)},
		SSHWait:  orchestrator.DefaultSSHWait,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := svc.SetRun(string(r.ID), func(r *orchestrator.Run) {
		r.State = orchestrator.RunFailed
		for i := range r.Steps {
			r.Steps[i].State, r.Steps[i].Attempts, r.Steps[i].StartedAt, r.Steps[i].FinishedAt = orchestrator.StepSucceeded, 1, at, at.Add(time.Second)
		}
		last := &r.Steps[3]
		last.State, last.Attempts, last.Job = orchestrator.StepFailed, 2, "job_00000000000000000000000001"
		last.Failure = &orchestrator.Failure{Code: orchestrator.CodeFailed, Message: "task \"Greet " + hostile + "\" failed on web1", Hint: "mend it"}
		last.Report = &orchestrator.Report{
			Task: "Greet " + hostile, LastLines: []string{"fatal: " + hostile},
			Hosts: []orchestrator.HostReport{
				{Name: "db1", State: orchestrator.HostOK, OK: 3},
				{Name: "web1", Address: "192.0.2.1:2222", State: orchestrator.HostFailed, Task: "Greet " + hostile, Message: "no", Took: 1500 * time.Millisecond},
			},
		}
	}); err != nil {
		t.Fatal(err)
	}
	j, err := svc.ApplyWorkspace(ctx, "apply", "edge", false)
	if err != nil {
		t.Fatal(err)
	}
	addNightly(t, svc, nightlyFires()...)
	svc.AppendLog(j.ID, "a line\n"+hostile+"\n")
	if err := svc.SetJob(j.ID, func(j *orchestrator.Job) {
		j.State, j.StartedAt, j.Attempt.ID = orchestrator.JobSucceeded, at, "abcdefgh"
		j.Report = &orchestrator.Report{Summary: "1 create", Changes: []orchestrator.Change{{Address: "terraform_data.web1", Action: "create"}}}
	}); err != nil {
		t.Fatal(err)
	}
	return svc, rpctest.Serve(t, svc)
}

// reads are the read commands with the arguments of their golden runs.
var reads = map[string][]string{
	"doctor":           nil,
	"version":          nil,
	"workspace list":   nil,
	"workspace show":   {"edge"},
	"provision status": {"edge"},
	"provision list":   nil,
	"handoff status":   {"edge"},
	"schedule list":    nil,
	"schedule show":    {"nightly"},
	"inventory list":   nil,
	"inventory show":   {"tf:edge"},
	"host known-hosts": nil,
	"host fleet-key":   nil,
	"jobs list":        nil,
	"jobs show":        {"job_00000000000000000000000002"},
	"events":           nil,
}

// TestEveryCommandHasAGoldenFile walks the command tree: a command with --json
// must be among reads or changes, and the other way round. Every command that
// has something to say has it.
func TestEveryCommandHasAGoldenFile(t *testing.T) {
	textOnly := []string{"serve", "jobs logs", "provision logs"}
	found := map[string]bool{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		name := strings.TrimPrefix(c.CommandPath(), "exocomp ")
		switch has := c.Flags().Lookup("json") != nil; {
		case has:
			found[name] = true
		case !c.HasSubCommands() && !slices.Contains(textOnly, name) && !strings.HasPrefix(name, "completion"):
			t.Errorf("%s has no --json", name)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk((&app{}).root())
	for name := range found {
		_, read := reads[name]
		_, change := changes[name]
		if read == change {
			t.Errorf("%s has --json and no golden file: add it to reads or changes", name)
		}
	}
	for name := range changes {
		if !found[name] {
			t.Errorf("%s has no --json", name)
		}
	}
	for name := range reads {
		if !found[name] {
			t.Errorf("%s has no --json", name)
		}
	}
}

// volatile is what differs from run to run, and what stands for it.
var volatile = []struct {
	pattern *regexp.Regexp
	stand   string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`), "TIME"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`), "TIME"},
	{regexp.MustCompile(`"(uid|gid|pid)": ?\d+`), `"$1": 0`},
	{regexp.MustCompile(`("pid": 0,\s+"name": )"[^"]+"`), `$1"NAME"`},
	{regexp.MustCompile(`"go": "[^"]+"`), `"go": "GO"`},
	{regexp.MustCompile(`"platform": "[^"]+"`), `"platform": "PLATFORM"`},
	{regexp.MustCompile(`sha256:[0-9a-f]{64}`), "DIGEST"},
	{regexp.MustCompile(`"/[^"]+/linked([/"])`), `"LINKED$1`},
	{regexp.MustCompile(`"path": "/[^"]+/testdata/`), `"path": "TESTDATA/`},
	{regexp.MustCompile(`"config_file": "/[^"]+/testdata/`), `"config_file": "TESTDATA/`},
	{regexp.MustCompile(`took [0-9a-zµ.]+`), "took LONG"},
	{regexp.MustCompile(`(\S)  +`), "$1  "}, // columns are as wide as what differs
	{regexp.MustCompile(`(TIME)  [0-9hmsµ.]+\b`), "$1  LONG"},
}

// steady is s without what differs from run to run.
func steady(s string) string {
	for _, v := range volatile {
		s = v.pattern.ReplaceAllString(s, v.stand)
	}
	return s
}

// golden holds got against a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-"))
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: write it with -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got), write it anew with -update if that is meant:\n%s", path, diff)
	}
}

func TestReadCommands(t *testing.T) {
	t.Setenv("EXOCOMP_CONFIG", filepath.Join("testdata", "exocomp.hcl"))
	_, d := chain(t)
	for name, args := range reads {
		for _, form := range []string{".json", ".txt"} {
			t.Run(name+form, func(t *testing.T) {
				line := append(strings.Fields(name), args...)
				if form == ".json" {
					line = append(line, "--json")
				}
				got := run(t, d, line...)
				want := exitDone
				if name == "doctor" {
					want = exitFailed // a tool is missing
				}
				if got.code != want {
					t.Fatalf("exit code %d, want %d: %s", got.code, want, got.err)
				}
				if strings.ContainsAny(got.out+got.err, "\x1b\x07") {
					t.Errorf("control characters in %q", got.out+got.err)
				}
				if name == "version" && form == ".txt" {
					return // the release of Go is all of it
				}
				if form == ".json" {
					golden(t, name+form, steady(got.out))
				} else {
					golden(t, name+form, steady(got.out+got.err))
				}
			})
		}
	}
}

// TestAFilterNamesAWorkspace: a misspelt one is no empty list.
func TestAFilterNamesAWorkspace(t *testing.T) {
	_, d := chain(t)
	for _, name := range []string{"provision list", "jobs list", "events", "host known-hosts"} {
		line := append(strings.Fields(name), "--workspace", "egde")
		if got := run(t, d, line...); got.code != exitUsage || !strings.Contains(got.err, `"egde"`) {
			t.Errorf("%s of an unknown workspace: %+v", name, got)
		}
		reads := append(line, "--token-file", d.TokenFile(rpc.RoleReader))
		if got := run(t, d, reads...); strings.HasPrefix(name, "provision") && got.code != exitDone {
			t.Errorf("%s by a reader: %+v", name, got)
		}
	}
}

// TestReadCommandsOfNothing: lists are empty JSON lists, never null, and people
// read what to do.
func TestReadCommandsOfNothing(t *testing.T) {
	d := rpctest.Serve(t, rpctest.NewService())
	for _, name := range []string{"workspace list", "provision list", "inventory list", "host known-hosts", "jobs list", "schedule list"} {
		if got := run(t, d, append(strings.Fields(name), "--json")...); got.code != exitDone || got.out != "[]\n" {
			t.Errorf("%s --json of nothing: %+v", name, got)
		}
		if got := run(t, d, strings.Fields(name)...); got.code != exitDone || got.out != "" || got.err == "" {
			t.Errorf("%s of nothing: %+v", name, got)
		}
	}
	if got := run(t, d, "events"); got.code != exitDone || got.out != "" || got.err == "" {
		t.Errorf("events of nothing: %+v", got)
	}
}
