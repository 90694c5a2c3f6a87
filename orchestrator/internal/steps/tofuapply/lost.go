package tofuapply

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/tofu"
)

// missing compares what an ended apply started with what the state holds. It
// returns the creates that the state lacks together with the failure that names
// them. Where the state cannot be read, every create that may have happened
// counts as missing: the person who repairs the backend decides.
func (a *attempt) missing(ctx context.Context, plan tofu.Plan, journalPath string, sameBoot bool) ([]orchestrator.LostCreate, *orchestrator.Failure) {
	j, err := journal(journalPath)
	if err != nil && !os.IsNotExist(err) {
		sameBoot = false // an unreadable journal proves nothing
	}
	state, err := a.module.State(ctx)
	unreadable := ""
	if err != nil {
		unreadable = fmt.Sprintf(" (the state could not be read: %v)", err)
	}
	gone := tofu.Compare(plan.Creates, j, sameBoot, state)
	if len(gone) == 0 {
		return nil, nil
	}
	lost := make([]orchestrator.LostCreate, 0, len(gone))
	for _, g := range gone {
		lost = append(lost, orchestrator.LostCreate{Address: g.Address, ID: g.ID, Job: a.Job.ID, Since: time.Now()})
	}
	return lost, &orchestrator.Failure{
		Code: orchestrator.CodeFailed,
		Message: "tofu apply was cut short and the state lacks what it may have created" +
			unreadable + ": " + addresses(lost),
		Hint: a.lostHint(lost),
	}
}

// clearSuspicion looks whether the addresses that an earlier apply may have
// lost are in the state by now, and returns those that are. While any other
// stands the apply is refused, unless a person accepts the loss.
func (a *attempt) clearSuspicion(ctx context.Context) ([]string, *orchestrator.Failure) {
	suspects := a.module.Workspace.Lost
	if len(suspects) == 0 {
		return nil, nil
	}
	found, still, err := Suspects(ctx, a.module, suspects)
	switch {
	case a.acceptLost && (err != nil || len(still) > 0):
		a.Logf("going on although these may exist without being in the state (--accept-lost): %s", addresses(still))
		if _, err := a.Ledger.AcceptLost(ctx, a.Job.Workspace, a.Job.SubmittedBy); err != nil {
			return nil, orchestrator.FailureOf(err)
		}
		return nil, nil
	case err != nil:
		return nil, orchestrator.FailureOf(err)
	case len(still) > 0:
		return nil, &orchestrator.Failure{
			Code:    orchestrator.CodeRefused,
			Message: "the state may lack what an interrupted apply created: " + addresses(still),
			Hint:    a.lostHint(still),
		}
	}
	return found, nil
}

// Suspects parts the creates that an interrupted apply may have lost into
// addresses that the state holds by now and those it still lacks.
func Suspects(ctx context.Context, m tofu.Module, lost []orchestrator.LostCreate) (found []string, still []orchestrator.LostCreate, err error) {
	state, err := m.State(ctx)
	if err != nil {
		return nil, lost, err
	}
	for _, l := range lost {
		if id, ok := state[l.Address]; ok && (l.ID == "" || id == "" || id == l.ID) {
			found = append(found, l.Address)
		} else {
			still = append(still, l)
		}
	}
	return found, still, nil
}

func (a *attempt) lostHint(lost []orchestrator.LostCreate) string {
	var b strings.Builder
	fmt.Fprintf(&b, "look whether they exist; bring each into the state, in %s:", a.module.Workspace.Dir)
	for _, l := range lost {
		b.WriteString(" " + l.ImportCommand() + ";")
	}
	if a.Job.Run != "" {
		fmt.Fprintf(&b, " then: exocomp provision resume %s; or go on without them: add --accept-lost", a.Job.Run)
	} else {
		fmt.Fprintf(&b, " then: exocomp workspace apply %s; or go on without them: add --accept-lost", a.Job.Workspace)
	}
	return b.String()
}

func addresses(lost []orchestrator.LostCreate) string {
	names := make([]string, 0, len(lost))
	for _, l := range lost {
		name := l.Address
		if l.ID != "" {
			name += " (id " + l.ID + ")"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
