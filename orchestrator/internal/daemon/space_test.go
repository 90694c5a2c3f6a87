package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
)

// A job that prints much is named, with what ends it, before the disk is full.
func TestAJobThatPrintsMuchIsNamed(t *testing.T) {
	d := bare(t)
	d.submit(t)
	j, err := d.ledger.ClaimJob(t.Context())
	if err != nil || j == nil {
		t.Fatal(j, err)
	}
	phase := filepath.Join(jobs.ControlDir(d.cfg.DataDir, j.Attempt.ID), "apply")
	if err := os.MkdirAll(phase, 0o700); err != nil {
		t.Fatal(err)
	}
	says := func() string {
		t.Helper()
		list, err := d.spaceWarnings(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(list, "\n")
	}
	if got := says(); strings.Contains(got, string(j.ID)) {
		t.Errorf("a job that printed nothing is named: %s", got)
	}
	f, err := os.Create(filepath.Join(phase, "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := syscall.Fallocate(int(f.Fd()), 0, 0, muchRaw); err != nil {
		t.Fatal(err)
	}
	if got := says(); !strings.Contains(got, "64.0 MiB") || !strings.Contains(got, "exocomp jobs cancel "+string(j.ID)) {
		t.Errorf("warnings: %q", got)
	}
}

func TestAStartOnAFullDiskSaysWhatToDo(t *testing.T) {
	err := fullHint("/d", &os.PathError{Op: "write", Path: "/d/seeds/x", Err: syscall.ENOSPC})
	if f := orchestrator.FailureOf(err); !strings.Contains(f.Message, "no space is left in the directory /d") || f.Hint == "" {
		t.Errorf("%+v", f)
	}
	if err := fullHint("/d", os.ErrPermission); !errors.Is(err, os.ErrPermission) || orchestrator.FailureOf(err).Hint != "" {
		t.Errorf("another error became %v", err)
	}
}
