package ledger

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

// commits counts the commits in a ledger's WAL: the frames that carry the
// size of the database (https://sqlite.org/fileformat.html, section 4.1).
func commits(t *testing.T, l *Ledger) (n int) {
	t.Helper()
	b := must(os.ReadFile(l.Path() + "-wal"))(t)
	if len(b) < 32 {
		return 0
	}
	page := int(binary.BigEndian.Uint32(b[8:]))
	salt := string(b[16:24])
	for f := b[32:]; len(f) >= 24+page && string(f[8:16]) == salt; f = f[24+page:] {
		if binary.BigEndian.Uint32(f[4:]) != 0 {
			n++
		}
	}
	return n
}

// Each commit is an fsync: a method makes one, whatever follows from it.
func TestEachMethodCommitsOnce(t *testing.T) {
	l := openTest(t)
	ctx := t.Context()
	if _, err := l.writer.ExecContext(ctx, `PRAGMA wal_autocheckpoint = 0`); err != nil { // so that the WAL keeps all
		t.Fatal(err)
	}
	var run orchestrator.Run
	var j *orchestrator.Job
	var other orchestrator.JobID
	res := newResource(t, l, "a")
	res.workspace = "handed"
	for _, c := range []struct {
		name string
		want int
		call func() error
	}{
		{"StartDaemon", 1, func() error { _, err := l.StartDaemon(ctx, "v", 1); return err }},
		{"AddWorkspace", 1, func() error { _, err := l.AddWorkspace(ctx, workspaceNamed("edge"), tester); return err }},
		{"AddWorkspace again", 0, func() error { _, err := l.AddWorkspace(ctx, workspaceNamed("edge"), tester); return err }},
		{"ClaimJob of nothing", 0, func() error { _, err := l.ClaimJob(ctx); return err }},
		{"SubmitRun", 1, func() (err error) { run, _, err = l.SubmitRun(ctx, newRun("edge")); return err }},
		{"SubmitRun behind it", 1, func() error { _, _, err := l.SubmitRun(ctx, newRun("edge")); return err }},
		{"ClaimJob", 1, func() (err error) { j, err = l.ClaimJob(ctx); return err }},
		{"SetPhase", 1, func() error { return l.SetPhase(ctx, j.ID, j.Attempt.Token, "plan") }},
		{"Progress", 1, func() error { return l.Progress(ctx, j.ID, "x", "") }},
		{"InterruptJob", 1, func() error { _, err := l.InterruptJob(ctx, j.ID, j.Attempt.Token, "x", true); return err }},
		{"ClaimJob again", 1, func() (err error) { j, err = l.ClaimJob(ctx); return err }},
		{"ChangePins that adds", 1, func() error {
			c := adding(pin("h1", "A", "edge/web1"), pin("h2", "B", "edge/web2"))
			c.Job = j.ID
			return l.ChangePins(ctx, c)
		}},
		{"FinishJob with everything", 1, func() error {
			o := failure() // the next run's first step is released with it
			o.Inventory, o.Retire = inventoryOf("web2"), []orchestrator.Pin{pin("h1", "A", "edge/web1")}
			o.Admit = []orchestrator.Admission{{Host: "web2", Login: orchestrator.LoginInventory}}
			o.Lost, o.Warnings = []orchestrator.LostCreate{{Address: "a.b"}}, []string{"w1", "w2"}
			_, err := l.FinishJob(ctx, j.ID, j.Attempt.Token, o)
			return err
		}},
		{"ClaimJob that refuses", 1, func() (err error) { j, err = l.ClaimJob(ctx); return err }},
		{"SubmitJob that accepts", 1, func() error {
			n := orchestrator.NewJob{Kind: orchestrator.JobWorkspaceApply, Workspace: "edge", Spec: orchestrator.JobSpec{AcceptLost: true}}
			job, err := l.SubmitJob(ctx, n)
			other = job.ID
			return err
		}},
		{"CancelJob", 1, func() error { _, err := l.CancelJob(ctx, other, false, tester); return err }},
		{"ChangePins that does everything", 1, func() error {
			c := rotating(pin("h2", "C"), pin("h2", "B"))
			c.Add, c.Retire = []orchestrator.Pin{pin("h3", "A")}, retiring(pin("h3", "Z")).Retire
			return l.ChangePins(ctx, c)
		}},
		{"PruneProgress", 0, func() error { _, err := l.PruneProgress(ctx); return err }},
		{"PruneRetiredPins", 0, func() error { _, err := l.PruneRetiredPins(ctx); return err }},
		{"SetDraining", 1, func() error { return l.SetDraining(ctx, true, tester) }},
		{"SetDraining again", 0, func() error { return l.SetDraining(ctx, true, tester) }},
		{"PutSealed", 1, func() error { return l.PutSealed(ctx, "k", "n", []byte("x")) }},
		{"EnsureRun", 1, func() error { _, err := l.EnsureRun(ctx, res.handing("a", "web9@h9")); return err }},
		{"EnsureRun behind it", 1, func() error { _, err := l.EnsureRun(ctx, res.handing("b", "web9@h9")); return err }},
		{"EndProvision", 1, func() error { _, err := res.end(nil, true); return err }},
		{"AbandonRuns before it is time", 0, func() error { _, err := l.AbandonRuns(ctx); return err }},
		{"RemoveWorkspace", 1, func() error { return l.RemoveWorkspace(ctx, "edge", false, tester) }},
		{"StopDaemon", 1, func() error { return l.StopDaemon(ctx) }},
	} {
		before := commits(t, l)
		if err := c.call(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := commits(t, l) - before; got != c.want {
			t.Errorf("%s made %d commits, want %d", c.name, got, c.want)
		}
	}
	wantSteps(t, l, run.ID, "failed: failed blocked blocked blocked")
}

// statements records what runs on connections.
type statements struct {
	mu   sync.Mutex
	seen map[string][]driver.NamedValue // by text, with arguments of one use
}

// recordingConnector opens connections whose statements are recorded.
type recordingConnector struct {
	driver.Connector
	to *statements
}

func (c recordingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	return recordingConn{conn, c.to}, err
}

func (s *statements) add(query string, args []driver.NamedValue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[query] = args
}

type recordingConn struct {
	driver.Conn
	to *statements
}

func (c recordingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.to.add(query, args)
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c recordingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.to.add(query, args)
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c recordingConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
}

// grows names the tables that grow with use: no statement may walk one.
var grows = regexp.MustCompile(`^SCAN (run|step|job|turn|event|pin|pin_user|admission|previous|oldest|t|fire|started|busy|newer)\b`)

// With a hundred thousand runs on record, everyday calls stay fast: each
// statement finds its rows by an index, or walks one and stops at a limit.
func TestNoStatementWalksATableThatGrows(t *testing.T) {
	l := openAt(t, filepath.Join(quickDir(t), "ledger.db"), Options{})
	rec := &statements{seen: map[string][]driver.NamedValue{}}
	for _, db := range []**sql.DB{&l.writer, &l.reader} {
		writes := db == &l.writer
		if err := (*db).Close(); err != nil {
			t.Fatal(err)
		}
		*db = sql.OpenDB(recordingConnector{connector{path: l.path, writes: writes}, rec})
	}
	l.writer.SetMaxOpenConns(1)
	everydayCalls(t, l)
	seen := maps.Clone(rec.seen) // looking at the plans is recorded too
	if len(seen) < 40 {
		t.Errorf("only %d statements seen", len(seen))
	}
	for query, args := range seen {
		for _, line := range explainPlan(t, l, query, args) {
			limited := strings.Contains(query, "LIMIT")
			if grows.MatchString(line) && !limited {
				t.Errorf("%s\nin%s", line, query)
			}
			if limited && strings.Contains(line, "TEMP B-TREE") && query != claimable {
				t.Errorf("%s, so the limit saves nothing\nin%s", line, query)
			}
		}
	}
}

// explainPlan asks SQLite how it would run a statement.
func explainPlan(t *testing.T, l *Ledger, query string, named []driver.NamedValue) []string {
	t.Helper()
	if strings.HasPrefix(query, "PRAGMA") {
		return nil
	}
	args := make([]any, len(named))
	for i, a := range named {
		args[i] = a.Value
	}
	return must(collect(t.Context(), l.writer, func(row scanner) (string, error) {
		var id, parent, unused int
		var detail string
		err := row.Scan(&id, &parent, &unused, &detail)
		return detail, err
	}, "EXPLAIN QUERY PLAN "+query, args...))(t)
}

// everydayCalls makes the calls that a daemon makes all day.
func everydayCalls(t *testing.T, l *Ledger) {
	ctx := t.Context()
	addWorkspace(t, l, "edge")
	n := newRun("edge")
	n.Key = "key"
	for range 2 {
		if _, _, err := l.SubmitRun(ctx, n); err != nil {
			t.Fatal(err)
		}
	}
	j := claim(t, l)
	if err := l.SetPhase(ctx, j.ID, j.Attempt.Token, "plan"); err != nil {
		t.Fatal(err)
	}
	addPins(t, l, pin("h1", "A", "edge/web1"), pin("h2", "B", "edge/web2"))
	finish(t, l, j, orchestrator.Outcome{Inventory: inventoryOf("web1"), Retire: []orchestrator.Pin{pin("h2", "B")}})
	j = claim(t, l)
	must(l.InterruptJob(ctx, j.ID, j.Attempt.Token, "x", true))(t)
	onboard(t, l, "web1")
	finish(t, l, claim(t, l), failure())
	must(l.ResumeRun(ctx, orchestrator.ResumeRun{Run: j.Run, Spec: spec("b")}))(t)
	must(l.CancelRun(ctx, j.Run, false, tester))(t)
	job := submitJob(t, l, orchestrator.JobWorkspaceApply, "edge")
	must(l.CancelJob(ctx, job.ID, false, tester))(t)
	must(l.PruneRetiredPins(ctx))(t)
	must(l.PruneProgress(ctx))(t)
	changePins(t, l, rotating(pin("h1", "C"), pin("h1", "A")))

	must(l.Run(ctx, j.Run))(t)
	must(l.NewestRun(ctx, "edge"))(t)
	must(l.Runs(ctx, orchestrator.RunFilter{Limit: 20}))(t)
	must(l.Runs(ctx, orchestrator.RunFilter{Limit: 20, State: orchestrator.RunFailed}))(t)
	must(l.Runs(ctx, orchestrator.RunFilter{Limit: 20, Before: j.Run, Workspace: "edge"}))(t)
	must(l.Job(ctx, j.ID))(t)
	must(l.Jobs(ctx, orchestrator.JobFilter{Limit: 20}))(t)
	must(l.Jobs(ctx, orchestrator.JobFilter{Run: j.Run}))(t)
	must(l.Jobs(ctx, orchestrator.JobFilter{Limit: 20, Workspace: "edge"}))(t)
	must(l.Jobs(ctx, orchestrator.JobFilter{Limit: 20, State: orchestrator.JobFailed}))(t)
	must(l.RunningJobs(ctx))(t)
	must(l.Turns(ctx, "edge"))(t)
	must(l.Workspaces(ctx))(t)
	must(l.Inventory(ctx, "edge"))(t)
	must(l.Admissions(ctx, "edge"))(t)
	must(l.Pins(ctx, orchestrator.PinFilter{Workspace: "edge"}))(t)
	must(l.LastEventID(ctx))(t)
	for _, f := range []orchestrator.EventFilter{
		{After: 3}, {Workspace: "edge", After: 3}, {Run: j.Run}, {Job: j.ID}, {Security: true, Limit: 5}, {Newest: 5}, {Run: j.Run, Newest: 5, Limit: 5},
	} {
		must(l.Events(ctx, f))(t)
	}
	everydayFires(t, l)
	if err := l.RemoveWorkspace(ctx, "edge", false, tester); err != nil {
		t.Fatal(err)
	}
}

func everydayFires(t *testing.T, l *Ledger) {
	ctx := t.Context()
	s := must(l.AddSchedule(ctx, applySchedule("nightly", "edge"), tester))(t)
	mark := must(l.ScheduleMarks(ctx))(t)[0]
	due := []orchestrator.DueFire{{At: s.CreatedAt.Add(time.Second), State: orchestrator.FireWaiting}}
	if err := l.RecordFires(ctx, mark, due, due[0].At); err != nil {
		t.Fatal(err)
	}
	f, _, found, err := l.NextFire(ctx)
	if err != nil || !found {
		t.Fatal(err, found)
	}
	if err := l.StartFire(ctx, f.ID, orchestrator.NewJob{Kind: orchestrator.JobWorkspaceApply, Workspace: "edge"}); err != nil {
		t.Fatal(err)
	}
	f = must(l.Fire(ctx, f.ID))(t)
	must(l.RunSchedule(ctx, orchestrator.RunSchedule{Schedule: s.Name, At: due[0].At, Key: "now"}))(t)
	must(l.Fires(ctx, s.Name, 20))(t)
	must(l.SetPaused(ctx, s.Name, true, tester))(t)
	must(l.CancelJob(ctx, f.Job, false, tester))(t)
	if err := l.PruneFires(ctx, s.CreatedAt); err != nil {
		t.Fatal(err)
	}
}
