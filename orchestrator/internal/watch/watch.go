// Package watch applies a workspace when its configuration has changed: the
// reactive apply of a workspace that was added with --watch.
//
// It looks at the files again and again instead of being told: that works on
// every file system, has no limit on what is watched and misses nothing, also
// not what happened while no daemon ran. What was dealt with last stands in the
// ledger, in one transaction with the apply that it led to.
package watch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
	"github.com/exocomp/exocomp/orchestrator/internal/tofu"
)

// Ledger is what a watcher needs of the ledger.
type Ledger interface {
	Workspaces(ctx context.Context) ([]orchestrator.Workspace, error)
	Watched(ctx context.Context, workspace string) (digest string, err error)
	WatchFrom(ctx context.Context, workspace, digest string, files int) error
	ApplyWatched(ctx context.Context, workspace, digest, why string) (orchestrator.Job, error)
	NoteWatched(ctx context.Context, workspace, message string) error
}

// Interval is how often a watcher looks. A change is applied once it has stood
// for one interval, so that an editor or a checkout may finish first.
const Interval = 2 * time.Second

// Watcher watches the configurations of workspaces.
type Watcher struct {
	ledger Ledger
	log    *slog.Logger
	seen   map[string]*seen // by workspace
}

// seen is what the looks at one workspace have met so far. Only the look that
// has made it busy touches the rest.
type seen struct {
	busy atomic.Bool
	err  error // of the newest look

	modules []string          // directories of the root module and those that it calls
	marks   map[string]mark   // of the newest look; nil before the first
	digests map[string]string // by file, of what was dealt with last; nil before
	pending bool              // the marks have changed and nothing was done about it
	refused string            // what was said of this change already
}

// mark is what a file looks like from outside. Whoever writes to it changes its
// status, whatever times he gives it.
type mark struct {
	dev, ino uint64
	size     int64
	changed  unix.Timespec
}

// New returns a watcher that has not looked yet.
func New(l Ledger, log *slog.Logger) *Watcher {
	return &Watcher{ledger: l, log: log, seen: map[string]*seen{}}
}

// Run looks at every watched workspace until ctx ends. It does not wait for a
// look that a file system holds up.
func (w *Watcher) Run(ctx context.Context) error {
	t := time.NewTicker(Interval)
	defer t.Stop()
	var said string
	for {
		_, err := w.begin(ctx)
		if text := fmt.Sprint(err); err != nil && text != said && ctx.Err() == nil {
			w.log.Error("look for changed configurations", "err", err)
			said = text
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// Look looks once at every watched workspace and waits for the end of it.
func (w *Watcher) Look(ctx context.Context) error {
	looks, err := w.begin(ctx)
	if err != nil {
		return err
	}
	looks.Wait()
	var errs []error
	for _, s := range w.seen {
		errs = append(errs, s.err)
	}
	return errors.Join(errs...)
}

// begin begins a look at every watched workspace that none is going on at.
func (w *Watcher) begin(ctx context.Context) (looks *sync.WaitGroup, err error) {
	all, err := w.ledger.Workspaces(ctx)
	if err != nil {
		return nil, err
	}
	looks = &sync.WaitGroup{}
	watched := map[string]bool{}
	for _, ws := range all {
		if !ws.Watch || ws.HandedOver() {
			continue
		}
		watched[ws.Name] = true
		s := w.seen[ws.Name]
		if s == nil {
			s = &seen{pending: true}
			w.seen[ws.Name] = s
		}
		if !s.busy.CompareAndSwap(false, true) {
			continue
		}
		looks.Go(func() {
			defer s.busy.Store(false)
			err := w.look(ctx, ws, s)
			if err != nil && ctx.Err() == nil && (s.err == nil || s.err.Error() != err.Error()) {
				w.log.Error("look for a changed configuration", "workspace", ws.Name, "err", err)
			}
			s.err = err
		})
	}
	maps.DeleteFunc(w.seen, func(name string, _ *seen) bool { return !watched[name] })
	return looks, nil
}

func (w *Watcher) look(ctx context.Context, ws orchestrator.Workspace, s *seen) error {
	last, err := w.ledger.Watched(ctx, ws.Name)
	if err != nil {
		return err
	}
	first := s.marks == nil || last == ""
	if first {
		s.digests, s.pending, s.refused = nil, true, ""
	}
	marks := marksOf(tofu.WatchedFiles(ws, s.modules))
	if first || !maps.Equal(marks, s.marks) {
		s.modules = tofu.LocalModules(ws.Dir)
		s.marks, s.pending, s.refused = marksOf(tofu.WatchedFiles(ws, s.modules)), true, ""
		if last != "" {
			return nil // let it settle
		}
	}
	if !s.pending {
		return nil
	}
	digests, err := digestsOf(s.marks)
	if err != nil {
		return err
	}
	return w.deal(ctx, ws.Name, s, last, digests)
}

// Begin records the configuration of a workspace that is watched from now on, so
// that no change between this moment and the first look is missed.
func Begin(ctx context.Context, l Ledger, ws orchestrator.Workspace) error {
	digests, err := digestsOf(marksOf(tofu.WatchedFiles(ws, tofu.LocalModules(ws.Dir))))
	if err != nil {
		return err
	}
	return l.WatchFrom(ctx, ws.Name, digestOf(digests), len(digests))
}

// deal makes the ledger's digest that of the configuration as it is now.
func (w *Watcher) deal(ctx context.Context, name string, s *seen, last string, digests map[string]string) error {
	digest := digestOf(digests)
	var err error
	switch {
	case last == "":
		err = w.ledger.WatchFrom(ctx, name, digest, len(digests))
	case last != digest:
		var j orchestrator.Job
		if j, err = w.ledger.ApplyWatched(ctx, name, digest, why(s.digests, digests)); err == nil {
			w.log.Info("the configuration changed: apply it", "workspace", name, "job", j.ID)
		}
	}
	switch f := orchestrator.FailureOf(err); {
	case err == nil:
		s.digests, s.pending = digests, young(s.marks)
		return nil
	case f.Code != orchestrator.CodeRefused && f.Code != orchestrator.CodeConflict:
		return err
	default: // by a state of the workspace that a person ends; tried again with every look
		said := "the changed configuration is not applied: " + f.Message
		if f.Hint != "" {
			said += "; next: " + f.Hint
		}
		if said == s.refused {
			return nil
		}
		s.refused = said
		return w.ledger.NoteWatched(ctx, name, said)
	}
}

// marksOf leaves out what is not there.
func marksOf(files []string) map[string]mark {
	marks := make(map[string]mark, len(files))
	for _, f := range files {
		var st unix.Stat_t
		if err := unix.Stat(f, &st); err == nil {
			marks[f] = mark{st.Dev, st.Ino, st.Size, st.Ctim}
		}
	}
	return marks
}

// young reports whether a file was changed so lately that another change would
// leave the same mark: file systems count time in ticks.
func young(marks map[string]mark) bool {
	for _, m := range marks {
		if age := time.Since(time.Unix(m.changed.Unix())); age.Abs() < Interval/2 {
			return true
		}
	}
	return false
}

func digestsOf(marks map[string]mark) (map[string]string, error) {
	out := make(map[string]string, len(marks))
	for path := range marks {
		sum, err := fileDigest(path)
		if err != nil {
			return nil, err
		}
		out[path] = sum
	}
	return out, nil
}

// fileDigest returns a word for what is no file to read: tofu will say so.
func fileDigest(path string) (string, error) {
	f, err := durable.OpenRegular(path)
	switch {
	case errors.Is(err, durable.ErrNotRegular), errors.Is(err, os.ErrPermission), errors.Is(err, os.ErrNotExist):
		return "unreadable", nil
	case err != nil:
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func digestOf(files map[string]string) string {
	h := sha256.New()
	for _, path := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%s\x00%s\n", path, files[path])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// namedFiles is how many changed files an event names.
const namedFiles = 5

// why says what has changed, for people.
func why(before, now map[string]string) string {
	if before == nil {
		return "the configuration changed since it was looked at last"
	}
	var names []string
	for _, path := range slices.Sorted(maps.Keys(now)) {
		if before[path] != now[path] {
			names = append(names, filepath.Base(path))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(before)) {
		if _, there := now[path]; !there {
			names = append(names, filepath.Base(path)+" (gone)")
		}
	}
	if more := len(names) - namedFiles; more > 0 {
		names = append(names[:namedFiles], fmt.Sprintf("and %d more", more))
	}
	return "the configuration changed: " + strings.Join(names, ", ")
}
