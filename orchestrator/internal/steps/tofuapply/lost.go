package tofuapply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/internal/tofu"
)

// stateLimit bounds the reading of a state after an apply that went wrong, also
// where the job was cancelled: what is missing must be known all the same.
const stateLimit = 2 * time.Minute

// missing compares what an ended apply started with what the state holds, and
// returns the creates that the state lacks. Where the state cannot be read,
// every create that may have happened counts as missing: the person who repairs
// the backend decides. The error is [jobs.ErrShutdown]: the next daemon compares.
func (a *attempt) missing(ctx context.Context, plan tofu.Plan, journalPath string, sameBoot bool) ([]orchestrator.LostCreate, error) {
	ctx, end := a.Outlive(ctx)
	defer end()
	ctx, cancel := context.WithTimeout(ctx, stateLimit)
	defer cancel()
	j, err := journal(journalPath)
	if err != nil {
		a.Logf("the journal of the apply cannot be read and proves nothing: %v", err)
		sameBoot = false
	}
	if j.Torn {
		a.Logf("lines are missing in the journal of the apply, as they do after a full disk: it proves nothing")
	}
	var state tofu.State
	if err = a.unready; err == nil {
		state, err = a.module.State(ctx)
	}
	if cause := context.Cause(ctx); errors.Is(cause, jobs.ErrShutdown) {
		return nil, cause
	}
	if err != nil {
		a.Logf("the state cannot be read, everything that may have been created counts as missing: %v", err)
	}
	var lost []orchestrator.LostCreate
	for _, g := range tofu.Compare(plan.Creates, j, sameBoot, state) {
		lost = append(lost, orchestrator.LostCreate{
			Address: g.Address, ID: g.ID, PriorID: g.PriorID, Job: a.Job.ID, Since: time.Now(),
		})
	}
	return lost, nil
}

func (a *attempt) lostFailure(code orchestrator.Code, lost []orchestrator.LostCreate) *orchestrator.Failure {
	again := a.again(code == orchestrator.CodeCancelled)
	f := &orchestrator.Failure{
		Code:    code,
		Message: "tofu apply was cut short and the state lacks what it may have created: " + addresses(lost),
		Hint: fmt.Sprintf("look whether they exist; bring them into the state: %s; then: %s; or go on without them: %s --accept-lost",
			a.module.Workspace.ImportCommand(lost...), again, again),
	}
	if push := a.pushCommand(); push != "" {
		f.Message += "; tofu left the state that it could not write in " + erroredState
		f.Hint = push + "; then: " + again
	}
	return f
}

// Suspects parts the creates that an interrupted apply may have lost into
// addresses that the state holds by now and those it still lacks.
func Suspects(ctx context.Context, m tofu.Module, lost []orchestrator.LostCreate) (found []string, still []orchestrator.LostCreate, err error) {
	state, err := m.State(ctx)
	if err != nil {
		return nil, lost, err
	}
	for _, l := range lost {
		if id, ok := state[l.Address]; ok && l.FoundAs(id) {
			found = append(found, l.Address)
		} else {
			still = append(still, l)
		}
	}
	return found, still, nil
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
