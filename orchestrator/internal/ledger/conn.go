package ledger

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"

	sqlite3 "github.com/mattn/go-sqlite3"

	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

// synchronousFull is what SQLite answers to `PRAGMA synchronous` where each
// commit is fsynced (https://sqlite.org/pragma.html#pragma_synchronous). The
// driver's default for WAL is NORMAL, which a power cut may take back.
const synchronousFull = 2

// connector opens connections that are set up, and proved to be.
type connector struct {
	path   string
	writes bool
}

// Driver implements [driver.Connector].
func (connector) Driver() driver.Driver { return &sqlite3.SQLiteDriver{} }

// Connect implements [driver.Connector].
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	params := url.Values{
		"_synchronous":  {"FULL"},
		"_foreign_keys": {"on"},
		"_busy_timeout": {"10000"}, // milliseconds; nobody else should have it open
	}
	if c.writes {
		// A deferred transaction that turns to writing fails at once with BUSY.
		params.Set("_txlock", "immediate")
		params.Set("mode", "rw")
	} else {
		params.Set("_query_only", "on")
		params.Set("mode", "ro")
	}
	dsn := url.URL{Scheme: "file", Path: c.path, RawQuery: params.Encode()}
	conn, err := c.Driver().Open(dsn.String())
	if err != nil {
		return nil, err
	}
	if err := proveFull(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// proveFull reads the connection's synchronous setting back.
func proveFull(ctx context.Context, conn driver.Conn) error {
	rows, err := conn.(driver.QueryerContext).QueryContext(ctx, `PRAGMA synchronous`, nil)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	got := make([]driver.Value, 1)
	if err := rows.Next(got); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("read back synchronous: no answer")
		}
		return err
	}
	if got[0] != int64(synchronousFull) {
		return fmt.Errorf("read back synchronous: %v, want FULL (%d)", got[0], synchronousFull)
	}
	return nil
}

// create makes an empty private file at path, durably, or makes an existing
// ledger private; another program's file stays as it is. SQLite gives its WAL
// and index the same mode.
func create(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, durable.PrivateFile)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return durable.SyncDir(filepath.Dir(path))
	}
	// The application id's place: https://sqlite.org/fileformat.html, section 1.3.
	id := make([]byte, 4)
	if _, err := f.ReadAt(id, 68); err != nil || binary.BigEndian.Uint32(id) != applicationID {
		return nil // what it is, SQLite will say
	}
	if info.Mode().Perm() == durable.PrivateFile {
		return nil
	}
	return f.Chmod(durable.PrivateFile)
}
