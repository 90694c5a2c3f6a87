package ledger

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/exocomp/exocomp/orchestrator"
)

// applicationID marks the file as exocomp's ("exoc", see
// https://sqlite.org/pragma.html#pragma_application_id); user_version counts
// the migrations that it has seen.
const applicationID = 0x65786f63

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrations returns the SQL of each migration, in order: number n brings a
// ledger from version n-1 to n. A released one is never changed.
func migrations() ([]string, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	out := make([]string, len(names))
	for i, name := range names { // Glob sorts them
		b, err := migrationFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		out[i] = string(b)
	}
	return out, nil
}

// migrate brings the schema up to date, one transaction a migration. It looks
// before it writes anything: a file of another program, or of a newer exocomp,
// stays as it is.
func migrate(ctx context.Context, db *sql.DB, path string) error {
	all, err := migrations()
	if err != nil {
		return err
	}
	version, err := schemaVersion(ctx, db, path, len(all))
	if err != nil {
		return err
	}
	var mode string
	if err := db.QueryRowContext(ctx, `PRAGMA journal_mode = WAL`).Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return orchestrator.Errorf(orchestrator.CodeRefused, "the file system of the ledger %s cannot keep a write-ahead log", path).
			WithHint("put it on a local file system")
	}
	for ; version < len(all); version++ {
		if err := migrateOne(ctx, db, version+1, all[version]); err != nil {
			return fmt.Errorf("migrate to version %d: %w", version+1, err)
		}
	}
	return nil
}

func migrateOne(ctx context.Context, db *sql.DB, version int, text string) error {
	t, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = t.Rollback() }()
	if _, err := t.ExecContext(ctx, text); err != nil {
		return err
	}
	// A PRAGMA takes no parameters.
	if _, err := t.ExecContext(ctx, fmt.Sprintf(`PRAGMA user_version = %d`, version)); err != nil {
		return err
	}
	return t.Commit()
}

// schemaVersion returns the version of the file's schema, 0 for an empty file.
func schemaVersion(ctx context.Context, db *sql.DB, path string, newest int) (int, error) {
	var id, version, objects int
	row := db.QueryRowContext(ctx, `
		SELECT
			(SELECT application_id FROM pragma_application_id),
			(SELECT user_version FROM pragma_user_version),
			(SELECT count(*) FROM sqlite_schema)`)
	if err := row.Scan(&id, &version, &objects); err != nil {
		return 0, err
	}
	switch {
	case id != applicationID && (objects > 0 || version > 0):
		return 0, orchestrator.Errorf(orchestrator.CodeRefused, "%s is a database of another program", path).
			WithHint("move that file away, or give exocomp another data directory")
	case version > newest:
		return 0, orchestrator.Errorf(orchestrator.CodeRefused,
			"the ledger %s was written by a newer exocomp (schema %d, this one knows %d)", path, version, newest).
			WithHint("upgrade exocomp")
	}
	return version, nil
}

// sameSchema refuses a ledger that this binary cannot read as it stands, which
// a read-only opener may meet.
func sameSchema(ctx context.Context, db *sql.DB, path string) error {
	all, err := migrations()
	if err != nil {
		return err
	}
	version, err := schemaVersion(ctx, db, path, len(all))
	if err != nil {
		return err
	}
	if version < len(all) {
		return orchestrator.Errorf(orchestrator.CodeRefused,
			"the ledger %s has an older schema (%d, this exocomp reads %d)", path, version, len(all)).
			WithHint("start the daemon once: it brings the ledger up to date")
	}
	return nil
}
