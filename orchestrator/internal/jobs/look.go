package jobs

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// verdict is what lock, record and result say about a phase.
type verdict int

const (
	phaseFresh    verdict = iota // nothing ever ran
	phaseLive                    // a supervisor holds the lock
	phaseFinished                // there is a valid result
	phaseLost                    // something ran, and nobody will say how it ended
)

// finding is what became of a phase.
type finding struct {
	verdict verdict
	// lock is the phase's, held, unless the phase is live; nil where there is
	// none. The caller closes it.
	lock     *os.File
	outcome  *outcome // of a finished phase
	record   *record  // of a lost one, unless it was removed
	sameBoot bool     // a lost one is of the boot that still runs
	removed  bool     // somebody has removed the phase's directory
}

func closeLock(lock *os.File) {
	if lock != nil {
		_ = lock.Close()
	}
}

// look reads what became of a phase. Nothing may be concluded from an error: a
// live tool may be behind it.
func (a *Attempt) look(c control) (finding, error) {
	lock, err := c.tryLock(false)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return a.lookRemoved(c)
	case err != nil:
		return finding{}, err
	case lock == nil:
		return finding{verdict: phaseLive}, nil
	}
	f := finding{lock: lock}
	if err := a.readInto(&f, c); err != nil {
		closeLock(lock)
		return finding{}, err
	}
	return f, nil
}

// readInto completes the finding about a phase whose lock is free.
func (a *Attempt) readInto(f *finding, c control) (err error) {
	if f.outcome, err = c.readOutcome(a.Job.Attempt.Token); err != nil {
		return err
	}
	if f.outcome != nil {
		f.verdict = phaseFinished
		return nil
	}
	if f.record, err = c.readRecord(); err != nil || f.record == nil {
		return err
	}
	boot, err := readBootID(a.cfg.BootIDFile)
	if err != nil {
		return err
	}
	f.verdict, f.sameBoot = phaseLost, f.record.BootID == boot
	return nil
}

// see looks until it can: descriptors may be used up, a disk may not answer.
// Only a shutdown and a person's force end it.
func (a *Attempt) see(c control) (finding, error) {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, retryWait) {
		f, err := a.look(c)
		if err == nil {
			return f, nil
		}
		a.slog.Error("look at a phase: trying again", "err", err, "after", wait)
		select {
		case <-a.stopping:
			return finding{}, ErrShutdown
		case <-a.forced:
			return finding{}, err
		case <-time.After(wait):
		}
	}
}
