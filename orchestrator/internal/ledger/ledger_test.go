package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

var tester = orchestrator.Peer{UID: 1000, GID: 1000, PID: 42, Name: "tester"}

// openTest opens a ledger of the test's own.
func openTest(t *testing.T) *Ledger {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "ledger.db"), Options{})
}

func openAt(t *testing.T, path string, o Options) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// wantCode fails unless err has the code and its text holds every part.
func wantCode(t *testing.T, err error, code orchestrator.Code, parts ...string) {
	t.Helper()
	if orchestrator.CodeOf(err) != code {
		t.Fatalf("error = %v, want code %s", err, code)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q does not say %q", err, p)
		}
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestOpenMakesPrivateFilesDespiteUmask(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	l := openTest(t)
	addWorkspace(t, l, "edge")
	files, err := filepath.Glob(l.Path() + "*")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 4 {
		t.Errorf("files %v, want the ledger, its lock, WAL and index", files)
	}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != durable.PrivateFile {
			t.Errorf("%s has mode %v, want %v", f, info.Mode().Perm(), durable.PrivateFile)
		}
	}
}

func TestOpenMakesAnExistingLedgerPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := must(Open(t.Context(), path, Options{}))(t)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	openAt(t, path, Options{})
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != durable.PrivateFile {
		t.Errorf("mode %v, want %v", info.Mode().Perm(), durable.PrivateFile)
	}
}

func TestEveryConnectionReadsBackFull(t *testing.T) {
	l := openTest(t)
	for name, db := range map[string]*sql.DB{"writer": l.writer, "reader": l.reader} {
		for i := range db.Stats().MaxOpenConnections {
			conn := must(db.Conn(t.Context()))(t) // held, so that the next is another one
			defer func() { _ = conn.Close() }()
			var synchronous, keys, timeout int
			err := conn.QueryRowContext(t.Context(), `
				SELECT
					(SELECT synchronous FROM pragma_synchronous),
					(SELECT foreign_keys FROM pragma_foreign_keys),
					(SELECT timeout FROM pragma_busy_timeout)`).Scan(&synchronous, &keys, &timeout)
			if err != nil {
				t.Fatal(err)
			}
			if synchronous != synchronousFull || keys != 1 || timeout == 0 {
				t.Errorf("%s %d: synchronous %d, foreign_keys %d, busy_timeout %d", name, i, synchronous, keys, timeout)
			}
		}
	}
}

func TestAConnectionThatIsNotFullIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	conn := must(connector{}.Driver().Open("file:" + path + "?_synchronous=NORMAL"))(t)
	defer func() { _ = conn.Close() }()
	if err := proveFull(t.Context(), conn); err == nil {
		t.Error("a connection with synchronous=NORMAL passed")
	}
}

func TestReadersCannotWrite(t *testing.T) {
	l := openTest(t)
	if _, err := l.reader.ExecContext(t.Context(), `UPDATE daemon SET draining = 1`); err == nil {
		t.Error("the read-only pool wrote")
	}
}

func TestANewerLedgerIsRefusedAndLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := must(Open(t.Context(), path, Options{}))(t)
	if _, err := l.writer.ExecContext(t.Context(), `PRAGMA user_version = 999`); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	before := must(os.ReadFile(path))(t)
	for _, readOnly := range []bool{false, true} {
		_, err := Open(t.Context(), path, Options{ReadOnly: readOnly})
		wantCode(t, err, orchestrator.CodeRefused, "newer exocomp", "999", "upgrade exocomp")
	}
	if string(must(os.ReadFile(path))(t)) != string(before) {
		t.Error("the file was changed")
	}
}

func TestAnotherProgramsDatabaseIsRefusedAndLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.db")
	db := must(sql.Open("sqlite3", path))(t)
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE other (x)`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before := must(os.ReadFile(path))(t)
	_, err := Open(t.Context(), path, Options{})
	wantCode(t, err, orchestrator.CodeRefused, "another program")
	if string(must(os.ReadFile(path))(t)) != string(before) {
		t.Error("the file was changed")
	}
}

func TestAFileThatIsNoDatabaseIsRefusedAndLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letter.txt")
	text := strings.Repeat("dear reader, ", 1000)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), path, Options{})
	wantCode(t, err, orchestrator.CodeRefused, "is not a ledger", "move that file away")
	if string(must(os.ReadFile(path))(t)) != text {
		t.Error("the file was changed")
	}
}

func TestADamagedLedgerSaysSo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := must(Open(t.Context(), path, Options{}))(t)
	for i := range 50 {
		addWorkspace(t, l, fmt.Sprintf("w%d", i))
	}
	if err := l.Check(t.Context()); err != nil {
		t.Fatalf("check of a sound ledger: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	f := must(os.OpenFile(path, os.O_RDWR, 0))(t)
	info := must(f.Stat())(t)
	for at := int64(8192); at < info.Size(); at += 4096 {
		if _, err := f.WriteAt([]byte(strings.Repeat("x", 512)), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := Open(t.Context(), path, Options{})
	if err == nil {
		err = l.Check(t.Context())
		_ = l.Close()
	}
	wantCode(t, err, orchestrator.CodeInternal, "is damaged", "newest good copy")
}

func TestASecondOpenerIsRefusedWithTheHoldersPid(t *testing.T) {
	l := openTest(t)
	for _, readOnly := range []bool{false, true} {
		_, err := Open(t.Context(), l.Path(), Options{ReadOnly: readOnly})
		wantCode(t, err, orchestrator.CodeConflict, "in use", fmt.Sprintf("pid %d", os.Getpid()), "stop that daemon")
	}
	addWorkspace(t, l, "edge") // the first goes on
}

func TestReadOnlyReadsAndRefusesToWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	_, err := Open(t.Context(), path, Options{ReadOnly: true})
	wantCode(t, err, orchestrator.CodeNotFound)
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 0 {
		t.Errorf("a read-only opener made %v", left)
	}
	l := must(Open(t.Context(), path, Options{}))(t)
	addWorkspace(t, l, "edge")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	one, two := openAt(t, path, Options{ReadOnly: true}), openAt(t, path, Options{ReadOnly: true})
	for _, r := range []*Ledger{one, two} {
		if ws := must(r.Workspaces(t.Context()))(t); len(ws) != 1 {
			t.Errorf("workspaces %v, want edge", ws)
		}
	}
	wantCode(t, one.StopDaemon(t.Context()), orchestrator.CodeRefused, "reading only")
}

func TestADirectoryThatIsMissingIsNamed(t *testing.T) {
	_, err := Open(t.Context(), filepath.Join(t.TempDir(), "missing", "ledger.db"), Options{})
	wantCode(t, err, orchestrator.CodeNotFound, "missing", "make its directory")
}

func TestPathsWithAwkwardCharacters(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b?c#d%20é&mode=ro")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l := openAt(t, filepath.Join(dir, "ledger.db"), Options{})
	addWorkspace(t, l, "edge")
	if _, err := os.Stat(l.Path()); err != nil {
		t.Error(err)
	}
}

func TestMachineMistakesHaveASentence(t *testing.T) {
	l := openTest(t)
	for _, c := range []struct {
		err  error
		code orchestrator.Code
		says string
	}{
		{&os.PathError{Op: "open", Err: syscall.ENOSPC}, orchestrator.CodeInternal, "no space"},
		{&os.PathError{Op: "open", Err: syscall.EDQUOT}, orchestrator.CodeInternal, "no space"},
		{&os.PathError{Op: "open", Err: syscall.EROFS}, orchestrator.CodeInternal, "read-only"},
		{&os.PathError{Op: "open", Err: syscall.EACCES}, orchestrator.CodeInternal, "may not open"},
		{&os.PathError{Op: "read", Err: syscall.EIO}, orchestrator.CodeInternal, "file system failed"},
		{&os.PathError{Op: "open", Err: syscall.ENOENT}, orchestrator.CodeNotFound, "cannot be opened"},
	} {
		err := l.explain(t.Context(), "test", c.err)
		wantCode(t, err, c.code, c.says, l.Path())
		if !errors.Is(err, c.err) {
			t.Errorf("%v lost its cause", err)
		}
	}
}

func TestACancelledContextIsReportedAsSuchAndChangesNothing(t *testing.T) {
	l := openTest(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := l.write(ctx, "test", func(tx *tx) error {
		if err := tx.exec(ctx, `UPDATE daemon SET draining = 1`); err != nil {
			return err
		}
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want context.Canceled", err)
	}
	if must(l.Draining(t.Context()))(t) {
		t.Error("the change was kept")
	}
}

func TestTimeNeverGoesBackNotEvenOverARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	l := must(Open(t.Context(), path, Options{Now: clock}))(t)
	first := must(l.AddWorkspace(t.Context(), workspaceNamed("a"), tester))(t)
	run1, _, err := l.SubmitRun(t.Context(), newRun("a"))
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(-time.Hour)
	second := must(l.AddWorkspace(t.Context(), workspaceNamed("b"), tester))(t)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = openAt(t, path, Options{Now: clock})
	third := must(l.AddWorkspace(t.Context(), workspaceNamed("c"), tester))(t)
	run2, _, err := l.SubmitRun(t.Context(), newRun("c"))
	if err != nil {
		t.Fatal(err)
	}
	if second.CreatedAt.Before(first.CreatedAt) || !third.CreatedAt.After(second.CreatedAt) {
		t.Errorf("times %v, %v, %v go back", first.CreatedAt, second.CreatedAt, third.CreatedAt)
	}
	if run2.ID <= run1.ID {
		t.Errorf("run ids %s, %s do not sort by age", run1.ID, run2.ID)
	}
}

func TestChangedIsClosedByCommitsWithEventsOnly(t *testing.T) {
	l := openTest(t)
	changed := l.Changed()
	if err := l.PutSealed(t.Context(), "fleet-key", "private", []byte("x")); err != nil {
		t.Fatal(err)
	}
	_, err := l.AddWorkspace(t.Context(), orchestrator.Workspace{}, tester)
	wantCode(t, err, orchestrator.CodeInvalid)
	select {
	case <-changed:
		t.Fatal("woken without an event")
	default:
	}
	addWorkspace(t, l, "edge")
	select {
	case <-changed:
	default:
		t.Fatal("not woken by an event")
	}
	if l.Changed() == changed {
		t.Error("the closed channel was handed out again")
	}
}
