package daemon

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/engine"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/internal/ledger"
	"github.com/exocomp/exocomp/orchestrator/internal/publish"
	"github.com/exocomp/exocomp/orchestrator/inventory"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// site is a daemon's settings in a directory of the test's own.
func site(t *testing.T) Config {
	t.Helper()
	dir := t.TempDir()
	return Config{DataDir: filepath.Join(dir, "data"), RuntimeDir: filepath.Join(dir, "run"), Workers: 1, AutomationUser: "exocomp"}
}

func openLedger(t *testing.T, cfg Config) *ledger.Ledger {
	t.Helper()
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Open(t.Context(), cfg.Ledger(), ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// bare returns a daemon with a ledger and snapshots that runs nothing. The
// workspace edge is in it.
func bare(t *testing.T) *Daemon {
	t.Helper()
	cfg := site(t)
	d := &Daemon{cfg: cfg, log: slog.New(slog.DiscardHandler), ledger: openLedger(t, cfg)}
	t.Cleanup(func() { _ = d.ledger.Close() })
	var err error
	if d.snapshots, err = openSnapshots(filepath.Join(cfg.DataDir, "snapshots")); err != nil {
		t.Fatal(err)
	}
	if d.vendor, err = openVendor(filepath.Join(cfg.DataDir, "vendor")); err != nil {
		t.Fatal(err)
	}
	w := orchestrator.Workspace{Name: "edge", Dir: "/srv/edge", Approval: orchestrator.ApprovalNever}
	if _, err := d.ledger.AddWorkspace(t.Context(), w, orchestrator.Peer{}); err != nil {
		t.Fatal(err)
	}
	return d
}

// submit queues an apply of edge.
func (d *Daemon) submit(t *testing.T) orchestrator.Job {
	t.Helper()
	j, err := d.submitJob(t.Context(), "", orchestrator.JobWorkspaceApply, "edge", orchestrator.JobSpec{})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func (d *Daemon) claim(t *testing.T) *orchestrator.Job {
	t.Helper()
	j, err := d.ledger.ClaimJob(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func (d *Daemon) finish(t *testing.T, j *orchestrator.Job, o orchestrator.Outcome) {
	t.Helper()
	if _, err := d.ledger.FinishJob(t.Context(), j.ID, j.Attempt.Token, o); err != nil {
		t.Fatal(err)
	}
}

func TestAFailedStartIsNoCrash(t *testing.T) {
	cfg := site(t)
	if err := os.MkdirAll(cfg.RuntimeDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cfg.Socket(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := Run(t.Context(), cfg, Options{Version: "v1", Logger: slog.New(slog.DiscardHandler)})
	if orchestrator.CodeOf(err) != orchestrator.CodeConflict {
		t.Fatalf("Run = %v, want a conflict about the socket", err)
	}
	l := openLedger(t, cfg)
	defer func() { _ = l.Close() }()
	if clean, err := l.StartDaemon(t.Context(), "v1", 1); err != nil || !clean {
		t.Errorf("the next start finds clean %v, %v: a daemon that never ran did not crash", clean, err)
	}
}

func TestTheDaemonsDirectoriesAreItsOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	check := func(want string) {
		t.Helper()
		err := CheckDirectory(dir)
		if want == "" && err != nil || want != "" && (orchestrator.CodeOf(err) != orchestrator.CodeRefused || !strings.Contains(err.Error(), want)) {
			t.Errorf("CheckDirectory = %v, want %q", err, want)
		}
	}
	check("") // serve will make it
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	check("")
	for _, mode := range []os.FileMode{0o775, 0o757, 0o777 | os.ModeSticky} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		check("may be written by other users")
	}
	cfg := site(t)
	cfg.RuntimeDir = dir
	if err := Run(t.Context(), cfg, Options{Logger: slog.New(slog.DiscardHandler)}); orchestrator.CodeOf(err) != orchestrator.CodeRefused {
		t.Errorf("Run = %v, want refused", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // nobody else may give a directory away
		if err := os.Chown(dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		check("belongs to uid 65534")
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	check("is a file")
}

// readLog collects what a reader of a job's log gets.
func (d *Daemon) readLog(ctx context.Context, id orchestrator.JobID, follow bool, got chan<- string) error {
	return d.ReadLog(ctx, rpc.LogRequest{Job: id, Follow: follow}, func(c rpc.LogChunk) error {
		got <- string(c.Data)
		return nil
	})
}

func TestAFollowerWaitsForALogThatIsAboutToBegin(t *testing.T) {
	d := bare(t)
	d.submit(t)
	j := d.claim(t)
	got, done := make(chan string, 10), make(chan error, 1)
	if err := d.readLog(t.Context(), j.ID, false, got); err != nil {
		t.Errorf("who does not follow gets %v, want nothing yet", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() { done <- d.readLog(ctx, j.ID, true, got) }()
	select {
	case err := <-done:
		t.Fatalf("the follower ended before the log began: %v", err)
	case <-time.After(2 * logLater):
	}
	dir := jobs.ControlDir(d.cfg.DataDir, j.Attempt.ID)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "log"), []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if line := <-got; line != "hello\n" {
		t.Errorf("the follower got %q", line)
	}
	d.finish(t, j, orchestrator.Outcome{})
	if err := <-done; err != nil {
		t.Errorf("the follower ended with %v", err)
	}
}

func TestTheLogOfAJobThatWasRefusedAtItsTurnSaysSo(t *testing.T) {
	d := bare(t)
	d.submit(t)
	first := d.claim(t)
	second := d.submit(t)
	d.finish(t, first, orchestrator.Outcome{
		Failure: &orchestrator.Failure{Code: orchestrator.CodeFailed, Message: "killed"},
		Lost:    []orchestrator.LostCreate{{Address: "vm.web[0]"}},
	})
	if j := d.claim(t); j != nil {
		t.Fatalf("claimed %v: an apply is barred", j.ID)
	}
	got := make(chan string, 1)
	if err := d.readLog(t.Context(), second.ID, true, got); err != nil {
		t.Fatal(err)
	}
	if line := <-got; !strings.Contains(line, "refused before anything was started") || !strings.Contains(line, "vm.web[0]") {
		t.Errorf("the log says %q", line)
	}
}

// What a running job did stands only in its control directory, however old.
func TestPruneKeepsWhatARunningJobNeeds(t *testing.T) {
	d := bare(t)
	d.submit(t)
	running := d.claim(t).Attempt.ID
	old := time.Now().Add(-2 * orchestrator.LogRetention)
	for _, id := range []orchestrator.AttemptID{running, "ended"} {
		dir := jobs.ControlDir(d.cfg.DataDir, id)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
	}
	d.prune(t.Context(), time.Now().Add(-orchestrator.LogRetention))
	for id, want := range map[orchestrator.AttemptID]bool{running: true, "ended": false} {
		if _, err := os.Stat(jobs.ControlDir(d.cfg.DataDir, id)); (err == nil) != want {
			t.Errorf("the directory of attempt %s: %v, want there %v", id, err, want)
		}
	}
}

func TestPruneRemovesOldSnapshotsThatNothingRefersTo(t *testing.T) {
	d := bare(t)
	digest := func(name string) string { return "sha256:" + strings.Repeat(name, 64) }
	_, _, err := d.ledger.SubmitRun(t.Context(), orchestrator.NewRun{
		Kind: orchestrator.RunProvision, Workspace: "edge",
		Spec: orchestrator.RunSpec{Playbook: orchestrator.PlaybookRef{Path: "/p.yml", Entry: "p.yml", Digest: digest("a")}, SSHWait: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * orchestrator.LogRetention)
	for name, at := range map[string]time.Time{"a": old, "b": old, "c": time.Now(), "d": old} {
		path, err := d.snapshots.path(digest(name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if has, err := d.snapshots.has(digest("d")); err != nil || !has { // somebody is about to submit it
		t.Fatal(has, err)
	}
	d.prune(t.Context(), time.Now().Add(-orchestrator.LogRetention))
	for name, want := range map[string]bool{"a": true, "b": false, "c": true, "d": true} {
		if has, err := d.snapshots.has(digest(name)); err != nil || has != want {
			t.Errorf("snapshot %s is there: %v (%v), want %v", name, has, err, want)
		}
	}
}

func TestRepeatedDenialsAreOneEventAMinute(t *testing.T) {
	var d denials
	now := time.Now()
	for i, c := range []struct {
		what   denial
		after  time.Duration
		untold int
		tell   bool
	}{
		{denial{1000, "GetRun"}, 0, 0, true},
		{denial{1000, "GetRun"}, time.Second, 0, false},
		{denial{1000, "GetRun"}, 2 * time.Second, 0, false},
		{denial{1000, "CancelRun"}, 3 * time.Second, 0, true},
		{denial{1001, "GetRun"}, 3 * time.Second, 0, true},
		{denial{1000, "GetRun"}, denialInterval, 2, true},
		{denial{1000, "GetRun"}, 2 * denialInterval, 0, true},
	} {
		if untold, tell := d.count(c.what, now.Add(c.after)); untold != c.untold || tell != c.tell {
			t.Errorf("denial %d: %d untold, tell %v; want %d, %v", i, untold, tell, c.untold, c.tell)
		}
	}
}

// capture gives edge an inventory of hosts, and publishes it.
func (d *Daemon) capture(t *testing.T, hosts string) orchestrator.Inventory {
	t.Helper()
	inv, err := inventory.Derive("edge", map[string]inventory.Output{"hosts": {Value: json.RawMessage(hosts)}})
	if err != nil {
		t.Fatal(err)
	}
	content, err := inventory.Render(inv)
	if err != nil {
		t.Fatal(err)
	}
	d.submit(t)
	d.finish(t, d.claim(t), orchestrator.Outcome{Inventory: &orchestrator.Inventory{
		Workspace: "edge", Digest: inventory.Digest(content), Content: content, Hosts: inv.HostNames(),
	}})
	row, err := d.ledger.Inventory(t.Context(), "edge")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.publisher.Inventory(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	return row
}

func TestOnboardIsRefusedWhereItCannotBeDone(t *testing.T) {
	d := bare(t)
	d.publisher = &publish.Publisher{DataDir: d.cfg.DataDir}
	d.engine = engine.New(engine.Config{Ledger: d.ledger, Publisher: d.publisher, Logger: d.log})
	row := d.capture(t, `{"web1": {"ansible_host": "10.0.0.1"}, "here": {"ansible_connection": "local"}}`)
	onboard := func(hosts ...string) error {
		_, err := d.OnboardHosts(t.Context(), "", rpc.OnboardSpec{Hosts: hosts})
		return err
	}
	if err := onboard("edge/web1", "here"); orchestrator.CodeOf(err) != orchestrator.CodeInvalid || !strings.Contains(err.Error(), "edge/here is a local host") {
		t.Errorf("a local host: %v", err)
	}
	if err := onboard("web1"); err != nil {
		t.Errorf("an ssh host: %v", err)
	}
	path := d.publisher.InventoryPath("edge")
	if err := os.WriteFile(path, append(row.Content, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := onboard("web1"); orchestrator.CodeOf(err) != orchestrator.CodeRefused || !strings.Contains(err.Error(), "differs from the ledger") {
		t.Errorf("a file that was changed: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := onboard("web1"); orchestrator.CodeOf(err) != orchestrator.CodeRefused || !strings.Contains(err.Error(), "has lost its file") {
		t.Errorf("a file that was lost: %v", err)
	}
}
