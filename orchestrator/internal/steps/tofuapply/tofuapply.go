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
	"slices"

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

var phases = []string{phaseInit, phasePlan, phaseReplan, phaseApply}

// Ledger is what the step reads of the ledger.
type Ledger interface {
	Workspace(ctx context.Context, name string) (orchestrator.Workspace, error)
	Run(ctx context.Context, id orchestrator.RunID) (orchestrator.Run, error)
	Inventory(ctx context.Context, workspace string) (orchestrator.Inventory, error)
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
	Daemon    []string                      // environment by which its providers find the daemon
	InitDir   string                        // where the marks of finished inits are kept
	Artifacts func(workspace string) string // where its inventory is published
}

// attempt is one execution of the step.
type attempt struct {
	*Handler
	*jobs.Attempt
	module tofu.Module
	chain  *orchestrator.RunSpec // nil for a standalone job

	// unready is why tofu cannot be asked anything, nil where it can. Only an
	// attempt whose apply has begun goes on with it.
	unready error
}

// Handle implements [jobs.Handler].
func (h *Handler) Handle(ctx context.Context, a *jobs.Attempt) (orchestrator.Outcome, error) {
	at := &attempt{Handler: h, Attempt: a}
	if err := at.prepare(ctx); err != nil {
		if !a.Began(phaseApply) {
			return orchestrator.Outcome{}, err
		}
		// It is waited for all the same, and what it may have made counts.
		at.Logf("tofu cannot be asked how the apply went: %v", err)
		at.unready = err
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
	if err := a.requireState(ctx); err != nil {
		return a.stopped(ctx, err, out)
	}
	if lost := a.module.Workspace.Lost; len(lost) > 0 {
		found, _, err := Suspects(ctx, a.module, lost)
		if err != nil {
			return a.stopped(ctx, err, out)
		}
		out.Found = found
	}
	return a.capture(ctx, out)
}

// requireState refuses a workspace without a state: tofu says then that there
// are no outputs, which would empty the inventory and retire its pins.
func (a *attempt) requireState(ctx context.Context) error {
	if err := a.initWhenNeeded(ctx); err != nil {
		return err
	}
	applied, err := a.module.Applied(ctx)
	if err == nil && !applied {
		err = orchestrator.Errorf(orchestrator.CodeRefused, "workspace %s has no state: there are no outputs to read", a.Job.Workspace).
			WithHint("look whether its directory, tofu workspace and backend are the right ones: exocomp workspace show %s; "+
				"if nothing was applied yet: exocomp workspace apply %s", a.Job.Workspace, a.Job.Workspace)
	}
	return err
}

// prepare gathers what tofu needs. What bars a beginning, the module's
// directory or the later steps' tools, is no reason to give up what has begun;
// nor is a cancellation: how it ended must be known.
func (a *attempt) prepare(ctx context.Context) (err error) {
	fresh := !slices.ContainsFunc(phases, a.Began)
	if !fresh {
		var end context.CancelFunc
		ctx, end = a.Outlive(ctx)
		defer end()
	}
	a.module = tofu.Module{TempDir: filepath.Join(a.WorkDir, "tmp"), Variables: a.Variables, Daemon: a.Daemon, Job: a.Job.ID}
	if a.module.Workspace, err = a.Ledger.Workspace(ctx, a.Job.Workspace); err != nil {
		return err
	}
	if a.Job.Run != "" {
		run, err := a.Ledger.Run(ctx, a.Job.Run)
		if err != nil {
			return err
		}
		a.chain = &run.Spec
	}
	if fresh {
		if err := tofu.CheckDir(a.module.Workspace.Dir); err != nil {
			return err
		}
	}
	if a.module.Install, err = a.Locate(ctx); err != nil {
		return err
	}
	if fresh && a.chain != nil {
		if err := a.Preflight(ctx); err != nil {
			return err
		}
	}
	return durable.Mkdir(a.module.TempDir)
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
