package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

// settle makes sure that nothing of the attempt runs any more, and that its
// handler knows how every tool ended: where it does not, it is asked once more.
// It returns how the attempt ended, [ErrShutdown] where the daemon goes before
// that is known.
func (p *Pool) settle(ctx context.Context, a *Attempt, o orchestrator.Outcome, err error) (orchestrator.Outcome, error) {
	unread := false
	failed := err != nil
	stopped := a.retry(ctx, "wait for the job's supervisors", func(context.Context) error {
		more, err := a.settle(failed)
		unread = unread || more
		if err != nil && a.isForced() {
			a.slog.Error("wait for the job's supervisors: a person would not", "err", err)
			return nil
		}
		return err
	})
	if stopped != nil {
		return o, ErrShutdown
	}
	if serr := a.sweep(); serr != nil {
		a.slog.Error("end what the job left", "err", serr)
	}
	if !unread {
		return o, err
	}
	return p.reckon(ctx, a, o, err)
}

// settle waits until no tool of the attempt lives. A live supervisor is told to
// end its tool; one that died leaves a tool that is ended as Exec would, so that
// it saves its state. unread says that Exec has not told how the newest of them
// ended: the handler left it running, or failed, or panicked, before it asked.
// One that did not fail need not ask for what was over when it began.
func (a *Attempt) settle(failed bool) (unread bool, err error) {
	entries, err := os.ReadDir(a.ControlDir)
	if err != nil {
		return false, ignoreMissing(fmt.Errorf("look for supervisors: %w", err))
	}
	var phases []string
	for _, e := range entries {
		if e.IsDir() {
			phases = append(phases, e.Name())
		}
	}
	known := len(phases) > 0 // else all that could be told was removed
	if a.newest != "" && !slices.Contains(phases, a.newest) {
		phases = append(phases, a.newest)
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for _, phase := range phases {
		ran, left, err := a.endPhase(over, a.control(phase))
		if phase == a.newest && !a.read[a.newest] {
			unread = known && (left || ran && failed)
		}
		if err != nil {
			return unread, err
		}
	}
	return unread, nil
}

// endPhase returns when no tool of the phase lives: whether one ever did, and
// whether it had been left without an end. ctx has ended.
func (a *Attempt) endPhase(ctx context.Context, c control) (ran, left bool, err error) {
	for {
		found, err := a.see(c)
		if err != nil {
			return ran, left, err
		}
		switch found.verdict {
		case phaseLive:
			ran, left = true, true
			if stuck, err := a.wait(ctx, c, nil, nil); err != nil || stuck != nil {
				return true, true, err
			}
			continue
		case phaseLost:
			left = true
			err = a.endLost(ctx, c, found, true)
		}
		closeLock(found.lock)
		return found.verdict != phaseFresh, left, err
	}
}

// sweep ends what still carries the attempt's token.
func (a *Attempt) sweep() error {
	return sweeper{token: a.Job.Attempt.Token.Reveal(), workDir: a.WorkDir}.sweep(sweepLimit)
}

// reckonLimit bounds what a handler may do to find out how its tools ended.
const reckonLimit = 5 * time.Minute

// reckon calls the handler of an attempt that is over once more, for it to read
// how its tools ended and what that means. Exec starts nothing then: it answers
// with why the attempt is over.
func (p *Pool) reckon(ctx context.Context, a *Attempt, o orchestrator.Outcome, err error) (orchestrator.Outcome, error) {
	a.over = err
	if err == nil {
		a.over = orchestrator.Errorf(orchestrator.CodeInternal, "the %s handler did not wait for its tool", a.kind())
	}
	a.slog.Warn("asking the handler how its tools ended", "over", a.over)
	last, end := a.Outlive(ctx)
	defer end()
	last, stop := context.WithTimeoutCause(last, reckonLimit, a.over)
	defer stop()
	said, serr := p.handle(last, a)
	switch {
	case errors.Is(serr, ErrShutdown), errors.Is(serr, ErrLost):
		return o, serr
	case serr != nil:
		return o, a.over
	case said.Failure != nil && !errors.Is(a.over, ErrCancelled):
		said.Failure.Message = a.over.Error() + "; " + said.Failure.Message
	}
	return said, nil
}
