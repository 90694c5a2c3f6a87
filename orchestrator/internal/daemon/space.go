package daemon

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
)

const (
	// lowSpace is where a person should hear of a file system that fills.
	lowSpace = 64 << 20
	// muchRaw is what a job's tools may print before that is worth a word.
	muchRaw = 64 << 20
)

// mebibytes is a number of bytes for people.
func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// LowSpace returns a warning where a directory's file system is nearly full, and
// is empty where it is not, or cannot be asked.
func LowSpace(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return ""
	}
	free := int64(st.Bavail) * st.Bsize
	if free >= lowSpace {
		return ""
	}
	return fmt.Sprintf("%s is left for the data directory %s: free some on its file system", mebibytes(free), dir)
}

// spaceWarnings says how full the data directory is, and which running jobs fill
// it: what their tools print is kept until they end.
func (d *Daemon) spaceWarnings(ctx context.Context) ([]string, error) {
	running, err := d.ledger.RunningJobs(ctx)
	if err != nil {
		return nil, err
	}
	var list []string
	low := LowSpace(d.cfg.DataDir)
	if low != "" {
		list = append(list, low)
	}
	for _, j := range running {
		size := jobs.RawSize(d.cfg.DataDir, j.Attempt.ID)
		if size >= muchRaw || low != "" && size >= muchRaw/64 {
			list = append(list, fmt.Sprintf("what job %s of workspace %s has printed takes %s of the data directory until it ends; to end it: exocomp jobs cancel %s",
				j.ID, j.Workspace, mebibytes(size), j.ID))
		}
	}
	return list, nil
}

// fullHint gives an error below a directory something to do where its file system
// is full. Other errors, and those that say what to do, stay as they are.
func fullHint(dir string, err error) error {
	var domain *orchestrator.Error
	if errors.As(err, &domain) || !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	return orchestrator.Errorf(orchestrator.CodeFailed, "no space is left in the directory %s: %w", dir, err).
		WithHint("free some on its file system; what exocomp keeps there: %s | sort -n | tail; then start exocomp again",
			orchestrator.ShellCommand("du", "-a", dir))
}
