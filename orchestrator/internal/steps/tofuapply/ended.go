package tofuapply

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/internal/tofu"
)

// ended returns nil for a tool that did its work, and otherwise why not and
// what to do about it.
func (a *attempt) ended(res jobs.Result, what string) *orchestrator.Failure {
	if res.Succeeded() {
		return nil
	}
	f := &orchestrator.Failure{Code: orchestrator.CodeFailed}
	j, err := journal(res.StdoutPath)
	said := j.Err()
	lock, locked := j.Lock()
	switch {
	case res.Cancelled:
		f.Code = orchestrator.CodeCancelled
		f.Message = what + " was cancelled; it ended in order and saved its state"
		if res.Signal != "" {
			f.Message = what + " was cancelled by force (" + res.Signal + "): its state may be incomplete"
		}
	case res.Signal != "":
		f.Message = fmt.Sprintf("%s was killed (%s)", what, res.Signal)
	case locked:
		f.Message, f.Hint = a.locked(what, lock)
	case err == nil && said != "":
		f.Message = fmt.Sprintf("%s: %s", what, said)
		if j.Stale() {
			f.Hint = "the state moved between plan and apply, somebody else applies this workspace; to plan again: " + a.again(false)
		}
	default:
		f.Message = fmt.Sprintf("%s ended with exit code %d", what, res.ExitCode)
	}
	switch push := a.pushCommand(); {
	case push != "":
		f.Message += "; tofu could not write the state to its backend and left it in " + erroredState
		f.Hint = push + "; then: " + a.again(res.Cancelled)
	case f.Hint == "" && !res.Cancelled:
		f.Hint = "correct what it names, then: " + a.again(false)
	}
	return f
}

// locked says who holds the state lock, as far as the backend tells, and what
// to do about it.
func (a *attempt) locked(what string, lock tofu.Lock) (message, hint string) {
	message = what + ": the state is locked"
	if lock.Who != "" {
		message += " by " + lock.Who
	}
	if lock.ID == "" {
		return message, "wait until it is free, then: " + a.again(false)
	}
	return message + ", lock id " + lock.ID, "wait for it; if nobody holds it any more: " +
		orchestrator.ShellCommand("exocomp", "workspace", "unlock", a.Job.Workspace, lock.ID) + "; then: " + a.again(false)
}

// erroredState is where tofu leaves a state that it could not write to its
// backend, in the module's directory.
const erroredState = "errored.tfstate"

// pushCommand is the command that saves a state which this job left so, empty
// where it left none.
func (a *attempt) pushCommand() string {
	ws := a.module.Workspace
	info, err := os.Stat(filepath.Join(ws.Dir, erroredState))
	if ws.Dir == "" || err != nil || info.ModTime().Before(a.Job.StartedAt) {
		return ""
	}
	return ws.TofuCommand("state", "push", erroredState)
}

// again is the command that has the work done once more. A run that was
// cancelled is not resumed.
func (a *attempt) again(cancelled bool) string {
	switch {
	case a.Job.Run != "" && cancelled:
		playbook := "PLAYBOOK"
		if a.chain != nil {
			playbook = a.chain.Playbook.Path
		}
		return orchestrator.ShellCommand("exocomp", "provision", "run", a.Job.Workspace, playbook)
	case a.Job.Run != "":
		return "exocomp provision resume " + string(a.Job.Run)
	case a.Job.Spec.RefreshOnly:
		return "exocomp workspace refresh " + a.Job.Workspace
	default:
		return "exocomp workspace apply " + a.Job.Workspace
	}
}

// applyAgain is the command that brings what was corrected in the configuration
// into the state: a refresh reads only what was applied.
func (a *attempt) applyAgain() string {
	if a.Job.Run == "" && a.Job.Spec.RefreshOnly {
		return "exocomp workspace apply " + a.Job.Workspace
	}
	return a.again(false)
}
