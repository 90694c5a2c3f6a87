package tofuapply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/tofu"
)

// stateLimit bounds the reading of a state after an apply that went wrong, also
// where the job was cancelled: what is missing must be known all the same.
const stateLimit = 2 * time.Minute

// missing compares what an ended apply started with what the state holds, and
// returns the creates that the state lacks. Where the state cannot be read,
// every create that may have happened counts as missing: the person who repairs
// the backend decides.
func (a *attempt) missing(ctx context.Context, plan tofu.Plan, journalPath string, sameBoot bool) []orchestrator.LostCreate {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stateLimit)
	defer cancel()
	j, err := journal(journalPath)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.Logf("the journal of the apply cannot be read and proves nothing: %v", err)
		sameBoot = false
	}
	state, err := a.module.State(ctx)
	if err != nil {
		a.Logf("the state cannot be read, everything that may have been created counts as missing: %v", err)
	}
	var lost []orchestrator.LostCreate
	for _, g := range tofu.Compare(plan.Creates, j, sameBoot, state) {
		lost = append(lost, orchestrator.LostCreate{Address: g.Address, ID: g.ID, Job: a.Job.ID, Since: time.Now()})
	}
	return lost
}

func (a *attempt) lostFailure(lost []orchestrator.LostCreate) *orchestrator.Failure {
	return &orchestrator.Failure{
		Code:    orchestrator.CodeFailed,
		Message: "tofu apply was cut short and the state lacks what it may have created: " + addresses(lost),
		Hint:    a.lostHint(lost),
	}
}

// clearSuspicion looks whether the addresses that an earlier apply may have
// lost are in the state by now, and returns those that are. While any other
// stands the apply is refused, unless a person accepts the loss.
func (a *attempt) clearSuspicion(ctx context.Context) ([]string, error) {
	suspects := a.module.Workspace.Lost
	if len(suspects) == 0 {
		return nil, nil
	}
	found, still, err := Suspects(ctx, a.module, suspects)
	switch {
	case a.acceptLost && (err != nil || len(still) > 0):
		a.Logf("going on although these may exist without being in the state (--accept-lost): %s", addresses(still))
		_, err := a.Ledger.AcceptLost(ctx, a.Job.Workspace, a.Job.SubmittedBy)
		return nil, err
	case err != nil:
		return nil, err
	case len(still) > 0:
		return nil, &orchestrator.Error{
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
