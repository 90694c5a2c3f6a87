package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

// control is the control directory of one phase.
type control struct{ dir string }

func controlRoot(dataDir string) string { return filepath.Join(dataDir, "control") }

// ControlDir returns the directory of an attempt's log and phases. It outlives
// the job until [Prune] takes it.
func ControlDir(dataDir string, id orchestrator.AttemptID) string {
	return filepath.Join(controlRoot(dataDir), string(id))
}

func (c control) path(name string) string { return filepath.Join(c.dir, name) }
func (c control) lockPath() string        { return c.path("lock") }
func (c control) stdoutPath() string      { return c.path("stdout") }
func (c control) eventsPath() string      { return c.path("events") }
func (c control) logPath() string         { return c.path("supervisor.log") }

// record is process.json. It is durable before the tool is executed, so a
// directory without it is one in which nothing ever ran.
type record struct {
	BootID     string  `json:"boot_id"`
	Supervisor process `json:"supervisor"`
	Tool       process `json:"tool"`
	Cgroup     cgroup  `json:"cgroup,omitempty"`
	Graceful   bool    `json:"graceful"`
}

func (c control) writeRecord(r record) error { return writeJSON(c.path("process.json"), r) }

// readRecord returns nil where there is none.
func (c control) readRecord() (*record, error) {
	var r record
	if err := readJSON(c.path("process.json"), &r); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	return &r, nil
}

// outcome is result.json: how a phase ended. It counts only with the token of
// the attempt that reads it.
type outcome struct {
	Token      string    `json:"token"`
	StartError string    `json:"start_error,omitempty"` // the tool never ran, and why
	ExitCode   int       `json:"exit_code"`
	Signal     string    `json:"signal,omitempty"`
	Told       bool      `json:"told,omitempty"` // the daemon had the tool told to end
	StartedAt  time.Time `json:"started_at"`
	FinishedAt time.Time `json:"finished_at"`
}

func (c control) writeOutcome(o outcome) error { return writeJSON(c.path("result.json"), o) }

// readOutcome returns nil where there is no valid one. The error says that
// nobody knows whether there is.
func (c control) readOutcome(token orchestrator.Secret) (*outcome, error) {
	var o outcome
	err := readJSON(c.path("result.json"), &o)
	switch {
	case errors.Is(err, errMalformed), errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case o.Token == "" || o.Token != token.Reveal():
		return nil, nil
	default:
		return &o, nil
	}
}

// markTerminated records that the graceful tool is about to get its SIGTERM
// and reports whether this is the first: a second one tells tofu to exit at
// once, its state unsaved. It holds across crashes of whoever sends it.
func (c control) markTerminated() bool {
	f, err := os.OpenFile(c.path("terminated"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, durable.PrivateFile)
	if err != nil {
		return !errors.Is(err, fs.ErrExist)
	}
	_ = f.Close()
	_ = durable.SyncDir(c.dir)
	return true
}

// tryLock takes the phase's lock. The file is nil, without an error, where a
// supervisor holds it; [fs.ErrNotExist] says that nobody ever made it.
func (c control) tryLock(create bool) (*os.File, error) {
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(c.lockPath(), flags, durable.PrivateFile)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, fmt.Errorf("lock %s: %w", c.lockPath(), err)
}

// lockFree reports whether no supervisor holds the phase's lock.
func (c control) lockFree() (bool, error) {
	lock, err := c.tryLock(false)
	if err != nil || lock == nil {
		return false, err
	}
	return true, lock.Close()
}

// lastWords returns the end of the supervisor's own log, for an error.
func (c control) lastWords() string {
	b, err := os.ReadFile(c.logPath())
	if err != nil || len(strings.TrimSpace(string(b))) == 0 {
		return "it said nothing"
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}

func writeJSON(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", filepath.Base(path), err)
	}
	return durable.WriteFile(path, append(b, '\n'), durable.PrivateFile)
}

var errMalformed = errors.New("it is malformed")

func readJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("decode %s: %w: %w", path, errMalformed, err)
	}
	return nil
}
