// Package ledger keeps exocomp's truth in one SQLite file and is the only place
// with SQL. Each exported method is one transaction: it commits the change
// together with the events that explain it, or changes nothing. Errors that
// people can act on are [orchestrator.Error]s.
//
// Every connection runs with synchronous=FULL, so what a method has returned
// survives a power cut.
package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

//go:generate go test -run "^Test(Migration1|Document)IsGenerated" -update .

// Options changes how a ledger is opened. The zero value is the daemon's.
type Options struct {
	Now      func() time.Time // the clock; nil: the machine's
	ReadOnly bool             // for looking at a ledger that no daemon has open; nothing is created
	Reserve  int64            // bytes beside the ledger that are kept for what must be recorded on a full disk
}

// Ledger is an open ledger. Its methods may be called from many goroutines at
// once: writes happen one after the other, reads beside them.
type Ledger struct {
	path   string
	lock   *lock
	writer *sql.DB // one connection; nil where the ledger is open read-only
	reader *sql.DB
	clock  *clock // used inside writing transactions only, hence one at a time
	ids    *ids   // likewise

	reserve reserve

	mu      sync.Mutex
	changed chan struct{} // closed at the next commit with events
}

// Open opens the ledger at path, creates it where it is missing, and brings its
// schema up to this binary's. The caller closes it.
//
// A ledger that another process has open is a [orchestrator.CodeConflict], one
// written by a newer exocomp a [orchestrator.CodeRefused]; neither is touched.
func Open(ctx context.Context, path string, o Options) (*Ledger, error) {
	l, err := open(ctx, path, o)
	for range reserveTries {
		kept := reserve{path: path + reserveSuffix, size: o.Reserve}
		if !isFull(err) || o.ReadOnly || !kept.release() {
			break
		}
		l, err = open(ctx, path, o)
	}
	return l, err
}

func open(ctx context.Context, path string, o Options) (_ *Ledger, err error) {
	const op = "open ledger"
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	l := &Ledger{
		path: path, changed: make(chan struct{}), ids: newIDs(),
		reserve: reserve{path: path + reserveSuffix, size: o.Reserve},
	}
	defer func() {
		if err != nil {
			_ = l.Close()
			err = l.explain(ctx, op, err)
		}
	}()
	if l.lock, err = acquire(path, o.ReadOnly); err != nil {
		return nil, err
	}
	if !o.ReadOnly {
		if err := create(path); err != nil {
			return nil, err
		}
		l.writer = sql.OpenDB(connector{path: path, writes: true})
		l.writer.SetMaxOpenConns(1)
		if err := migrate(ctx, l.writer, path); err != nil {
			return nil, err
		}
	}
	l.reader = sql.OpenDB(connector{path: path})
	readers := max(4, runtime.NumCPU())
	l.reader.SetMaxOpenConns(readers)
	l.reader.SetMaxIdleConns(readers)
	if err := sameSchema(ctx, l.reader, path); err != nil {
		return nil, err
	}
	last, err := newestInstant(ctx, l.reader)
	if err != nil {
		return nil, err
	}
	l.clock = newClock(o.Now, last)
	return l, nil
}

// Close ends all connections and lets another process open the ledger. Calls in
// progress finish first. It may be repeated.
func (l *Ledger) Close() error {
	var errs []error
	if l.reader != nil {
		errs = append(errs, l.reader.Close())
	}
	if l.writer != nil {
		errs = append(errs, l.writer.Close()) // last, so that it folds the WAL into the file
	}
	if l.lock != nil {
		errs = append(errs, l.lock.release())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close ledger: %w", err)
	}
	return nil
}

// Path returns the absolute path of the ledger's file.
func (l *Ledger) Path() string { return l.path }

// Check reads the whole file and reports damage, for `exocomp doctor`.
func (l *Ledger) Check(ctx context.Context) error {
	return l.read(ctx, "check ledger", func(q querier) error {
		found, err := collect(ctx, q, scanText[string], `PRAGMA quick_check`)
		if err != nil {
			return err
		}
		if len(found) == 1 && found[0] == "ok" {
			return nil
		}
		return damaged(l.path, fmt.Errorf("quick_check: %s", found[0]))
	})
}

// Changed returns a channel that is closed at the next commit that appends
// events. Take it, read, then wait on it: nothing is missed.
func (l *Ledger) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// wake closes the channel that [Ledger.Changed] has handed out.
func (l *Ledger) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
}

// refuseReadOnly is the answer of a writing method where Options.ReadOnly is set.
func (l *Ledger) refuseReadOnly() error {
	return orchestrator.Errorf(orchestrator.CodeRefused, "the ledger %s is open for reading only", l.path)
}
