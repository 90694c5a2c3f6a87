// Package tofuapply is the handler of step 1: init when needed, plan, the
// approval gate, apply of exactly that plan, and the capture of the outputs
// into the standing inventory. A standalone `workspace apply` and `workspace
// refresh` are the same code.
//
// Running it again is safe: a phase that has a result is not executed again
// within its attempt, a new attempt plans anew against the state, and an apply
// that ended without a result is compared with the state first (see lost.go).
package tofuapply

import (
	"context"
	"os"
	"path/filepath"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/internal/tofu"
)

// Phases of an attempt, which name its control directories.
const (
	phaseInit   = "init"
	phasePlan   = "plan"
	phaseReplan = "replan" // after an init that the first plan asked for
	phaseApply  = "apply"
)

// Ledger is what the step reads of the ledger.
type Ledger interface {
	Workspace(ctx context.Context, name string) (orchestrator.Workspace, error)
	Run(ctx context.Context, id orchestrator.RunID) (orchestrator.Run, error)
	Inventory(ctx context.Context, workspace string) (orchestrator.Inventory, error)
	AcceptLost(ctx context.Context, workspace string, by orchestrator.Peer) ([]orchestrator.LostCreate, error)
	Pins(ctx context.Context, filter orchestrator.PinFilter) ([]orchestrator.Pin, error)
}

// Handler applies workspaces.
type Handler struct {
	Ledger Ledger
	Locate func(context.Context) (tofu.Install, error)
	// Preflight asks whether the later steps of a chain can run at all, so that
	// no machine is created for a chain that must fail.
	Preflight func(context.Context) error
	Variables map[string]string             // given to every tofu as TF_VAR_<name>
	InitDir   string                        // where the marks of finished inits are kept
	Artifacts func(workspace string) string // where its inventory is published
}

// attempt is one execution of the step.
type attempt struct {
	*Handler
	*jobs.Attempt
	module     tofu.Module
	acceptLost bool
	chain      *orchestrator.RunSpec // nil for a standalone job
}

// Handle implements [jobs.Handler].
func (h *Handler) Handle(ctx context.Context, a *jobs.Attempt) (orchestrator.Outcome, error) {
	at, err := h.prepare(ctx, a)
	if err != nil {
		return orchestrator.Outcome{}, err
	}
	out, err := at.work(ctx)
	if err == nil && !out.Succeeded() {
		if out.Report == nil {
			out.Report = &orchestrator.Report{}
		}
		out.Report.LastLines = a.LastLines(lastLines)
	}
	return out, err
}

// lastLines is how much of the log a failure carries.
const lastLines = 20

func (a *attempt) work(ctx context.Context) (orchestrator.Outcome, error) {
	if a.Job.Spec.RefreshOnly {
		return a.refresh(ctx)
	}
	out, err := a.apply(ctx)
	if err != nil || !out.Succeeded() {
		return out, err
	}
	return a.capture(ctx, out)
}

// refresh reads the outputs again and applies nothing. It also notices what a
// person has imported meanwhile.
func (a *attempt) refresh(ctx context.Context) (orchestrator.Outcome, error) {
	out := orchestrator.Outcome{Report: &orchestrator.Report{Summary: "outputs read, nothing applied"}}
	if lost := a.module.Workspace.Lost; len(lost) > 0 {
		found, _, err := Suspects(ctx, a.module, lost)
		if err != nil {
			return a.stopped(ctx, err, out)
		}
		out.Found = found
	}
	return a.capture(ctx, out)
}

func (h *Handler) prepare(ctx context.Context, a *jobs.Attempt) (*attempt, error) {
	ws, err := h.Ledger.Workspace(ctx, a.Job.Workspace)
	if err != nil {
		return nil, err
	}
	// What bars a beginning is no reason to end a tool that was adopted.
	fresh := a.Job.Phase == ""
	if fresh {
		if err := tofu.CheckDir(ws.Dir); err != nil {
			return nil, err
		}
	}
	install, err := h.Locate(ctx)
	if err != nil {
		return nil, err
	}
	temp := filepath.Join(a.WorkDir, "tmp")
	if err := durable.Mkdir(temp); err != nil {
		return nil, err
	}
	at := &attempt{Handler: h, Attempt: a, acceptLost: a.Job.Spec.AcceptLost}
	at.module = tofu.Module{
		Install: install, Workspace: ws, TempDir: temp,
		Variables: h.Variables, Job: a.Job.ID,
	}
	if a.Job.Run != "" {
		run, err := h.Ledger.Run(ctx, a.Job.Run)
		if err != nil {
			return nil, err
		}
		at.chain = &run.Spec
		at.acceptLost = run.Spec.AcceptLost
		if fresh {
			if err := h.Preflight(ctx); err != nil {
				return nil, err
			}
		}
	}
	return at, nil
}

// planFile is where the saved plan lies: it holds variables in clear, so it
// lives and dies with the attempt's work directory.
func (a *attempt) planFile() string { return filepath.Join(a.WorkDir, "plan.tfplan") }

// exec runs a command as a supervised phase and shows what it is doing.
func (a *attempt) exec(ctx context.Context, phase string, c tofu.Command) (jobs.Result, error) {
	return a.Exec(ctx, jobs.Tool{
		Phase:      phase,
		Argv:       c.Argv,
		Env:        c.Env,
		Dir:        c.Dir,
		Graceful:   true,
		KeepStdout: true,
		Messages:   true,
		OnStdout: func(line []byte) {
			if text := tofu.Progress(line); text != "" {
				a.Doing(ctx, text)
			}
		},
	})
}

// journal reads the `-json` stream of a phase.
func journal(path string) (tofu.Journal, error) {
	f, err := os.Open(path)
	if err != nil {
		return tofu.Journal{}, err
	}
	defer func() { _ = f.Close() }()
	return tofu.ReadJournal(f)
}
