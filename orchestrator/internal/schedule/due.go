package schedule

import (
	"fmt"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

const (
	// listMissed is how many missed instants stand on record one by one; a
	// schedule of every second misses 86,400 a day.
	listMissed = 100
	// countMissed is how many are counted.
	countMissed = 10_000
)

// Due returns what becomes of the instants after since up to now, the oldest
// first. Those that are noticed late are missed; of the others the newest fires,
// once for all of them.
func (s Spec) Due(since, now time.Time) (due []orchestrator.DueFire) {
	late := now.Add(-orchestrator.MissedAfter)
	at := s.Next(since)
	missed := 0
	var last time.Time
	for ; !at.IsZero() && at.Before(late) && missed < countMissed; at = s.Next(at) {
		missed, last = missed+1, at
		if missed <= listMissed {
			due = append(due, orchestrator.DueFire{At: at, State: orchestrator.FireMissed, Reason: tooLate(at, now)})
		}
	}
	if !at.IsZero() && at.Before(late) {
		at = s.Next(late.Add(-time.Nanosecond))
		sum := &due[len(due)-1]
		sum.Reason += fmt.Sprintf("; so were more than %d further instants until then", countMissed-listMissed)
	} else if missed > listMissed {
		sum := &due[len(due)-1]
		sum.Reason += fmt.Sprintf("; so were %d further instants until %s", missed-listMissed, stamp(last))
	}
	first := len(due)
	for ; !at.IsZero() && !at.After(now); at = s.Next(at) {
		due = append(due, orchestrator.DueFire{At: at, State: orchestrator.FireWaiting})
	}
	for i := first; i < len(due)-1; i++ {
		due[i].State = orchestrator.FireCoalesced
		due[i].Reason = "the fire of " + stamp(due[len(due)-1].At) + ", noticed together with it, does the same"
	}
	return due
}

func tooLate(at, now time.Time) string {
	return fmt.Sprintf("it was noticed %s late, more than %s: the daemon was down, the machine slept, or its clock was set",
		now.Sub(at).Round(time.Second), orchestrator.MissedAfter)
}

// stamp prints an instant for people, with its zone.
func stamp(t time.Time) string { return t.Format("2006-01-02 15:04:05 MST") }
