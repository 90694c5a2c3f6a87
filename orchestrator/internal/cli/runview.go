package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

// printRun prints the ledger view of a run: its steps, and of the one that
// failed the hosts, the task, the last lines and the next thing to type.
func printRun(w io.Writer, r orchestrator.Run) {
	out := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	out("run %s  %s of %s: %s", r.ID, r.Kind, r.Workspace, r.State)
	out("  playbook   %s (%.19s…)", printable(r.Spec.Playbook.Path), r.Spec.Playbook.Digest)
	out("  submitted  %s, took %s", instant(r.CreatedAt), span(r.CreatedAt, r.FinishedAt))
	for _, s := range r.Steps {
		printStep(out, s)
	}
	failed := r.FailedStep()
	if failed == nil {
		return
	}
	if failed.State == orchestrator.StepFailed {
		printFailure(w, failed.Failure, failed.Report)
		out("  log   exocomp jobs logs %s", failed.Job)
		if goesOn(failed.Failure) {
			out("  then  exocomp provision resume %s", r.ID)
			if failed.Seq > 1 && failedInPart(failed.Report) {
				out("        or, for the hosts that failed alone: exocomp provision resume %s --failed-only", r.ID)
			}
		}
	}
}

// failedInPart reports whether some hosts failed and others did not.
func failedInPart(r *orchestrator.Report) bool {
	if r == nil {
		return false
	}
	bad := func(h orchestrator.HostReport) bool { return h.State.Failed() }
	well := func(h orchestrator.HostReport) bool { return !h.State.Failed() && h.State != orchestrator.HostSkipped }
	return slices.ContainsFunc(r.Hosts, bad) && slices.ContainsFunc(r.Hosts, well)
}

// goesOn reports whether a failed run is resumed once its failure is dealt with,
// and the hint does not say how or that another run is to be started.
func goesOn(f *orchestrator.Failure) bool {
	return f == nil || !strings.Contains(f.Hint, "exocomp provision resume") &&
		!strings.Contains(f.Hint, "exocomp provision run") && !strings.Contains(f.Hint, "exocomp handoff run")
}

func printStep(out func(string, ...any), s orchestrator.Step) {
	took := span(s.StartedAt, s.FinishedAt)
	if !s.State.Final() && s.State != orchestrator.StepRunning {
		took = "-"
	}
	note := ""
	if s.Report != nil {
		note = s.Report.Summary
	}
	if s.Failure != nil {
		note = firstLine(s.Failure.Message)
	}
	if len(s.Only) > 0 {
		note = strings.TrimSpace(fmt.Sprintf("(%d host(s) only) %s", len(s.Only), note))
	}
	if s.Attempts > 1 {
		note = strings.TrimSpace(fmt.Sprintf("(attempt %d) %s", s.Attempts, note))
	}
	if s.TakenFrom != "" {
		note = strings.TrimSpace(fmt.Sprintf("(of %s) %s", s.TakenFrom, note))
	}
	out("  %d  %-13s %-17s %8s  %s", s.Seq, s.Kind, s.State, took, printable(note))
}

// printFailure prints what a failure's first line, which stands above, does not
// say: the rest of it, for whom and in which task, the last lines, what to do.
func printFailure(w io.Writer, f *orchestrator.Failure, rep *orchestrator.Report) {
	said := ""
	if f != nil {
		said = f.Message
		if _, rest, more := strings.Cut(said, "\n"); more {
			indent(w, "     ", rest)
		}
	}
	if rep != nil {
		if rep.Task != "" {
			_, _ = fmt.Fprintf(w, "  task  %s\n", printable(rep.Task))
		}
		printHosts(w, rep.Hosts, true, said+"\n"+rep.Task)
		printLastLines(w, rep.LastLines, said)
	}
	if f != nil && f.Hint != "" {
		_, _ = fmt.Fprintf(w, "  next  %s\n", printable(f.Hint))
	}
}

// printLastLines prints what a tool said last, where that is not said.
func printLastLines(w io.Writer, lines []string, said string) {
	lines = slices.DeleteFunc(slices.Clone(lines), func(l string) bool {
		l = strings.TrimSpace(l)
		return l != "" && strings.Contains(said, l)
	})
	if len(lines) > 0 {
		_, _ = fmt.Fprintln(w, "  last lines")
		indent(w, "  │ ", strings.Join(lines, "\n"))
	}
}

// printHosts prints a line a host, without what is said; with onlyBad those that
// are well are counted, and those that had nothing to do are not.
func printHosts(w io.Writer, hosts []orchestrator.HostReport, onlyBad bool, said string) {
	well := 0
	for _, h := range hosts {
		if onlyBad && !h.State.Failed() {
			if h.State != orchestrator.HostSkipped {
				well++
			}
			continue
		}
		line := fmt.Sprintf("  host  %s: %s", h.Name, h.State)
		if h.Address != "" {
			line += " at " + h.Address
		}
		if h.Took > 0 {
			line += " after " + duration(h.Took.Round(time.Millisecond))
		}
		if h.OK > 0 {
			line += fmt.Sprintf(", %d ok, %d changed", h.OK, h.Changed)
		}
		if h.Task != "" && !strings.Contains(said, h.Task) {
			line += fmt.Sprintf(" in task %q", h.Task)
		}
		if m := firstLine(h.Message); m != "" && !strings.Contains(said, m) {
			line += ": " + m
		}
		_, _ = fmt.Fprintln(w, printable(line))
	}
	if well > 0 && well < len(hosts) {
		_, _ = fmt.Fprintf(w, "  host  %d more without failure\n", well)
	}
}

// what names the work of a job: the step, or the command that submitted it.
func what(j orchestrator.Job) string {
	switch {
	case j.StepKind != "":
		return string(j.StepKind)
	case j.Kind == orchestrator.JobWorkspaceApply && j.Spec.RefreshOnly:
		return "workspace-refresh"
	default:
		return string(j.Kind)
	}
}

// waits reports whether a run has work to do, none of which runs.
func waits(r orchestrator.Run) bool {
	return !r.State.Final() && r.State != orchestrator.RunAwaitingApproval &&
		!slices.ContainsFunc(r.Steps, func(s orchestrator.Step) bool { return s.State == orchestrator.StepRunning })
}

// at names the step that a run failed at, is in or comes to next, and is empty
// for one that succeeded or waits behind others.
func at(r orchestrator.Run) string {
	if s := r.FailedStep(); s != nil {
		return string(s.Kind)
	}
	for _, s := range r.Steps {
		switch s.State {
		case orchestrator.StepReady:
			return string(s.Kind) + " (queued)"
		case orchestrator.StepRunning, orchestrator.StepAwaitingApproval:
			return string(s.Kind)
		}
	}
	return ""
}

// printJob prints what a job is and how it ended.
func printJob(w io.Writer, j orchestrator.Job) {
	out := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	does := what(j)
	if j.Run != "" {
		does = fmt.Sprintf("step %d %s of %s", j.Step, j.StepKind, j.Run)
	}
	out("job %s  %s of %s: %s", j.ID, does, j.Workspace, j.State)
	out("  submitted  %s, took %s, attempt %d %s", instant(j.CreatedAt), span(j.StartedAt, j.FinishedAt), j.Attempt.Number, j.Attempt.ID)
	printSpec(out, j.Spec)
	if j.Redrives != "" {
		out("  redrives   %s", j.Redrives)
	}
	if j.RedrivenBy != "" {
		out("  redriven   by %s", j.RedrivenBy)
	}
	if j.CancelRequested && !j.State.Final() {
		out("  cancel     requested")
	}
	if j.Phase != "" {
		out("  phase      %s", j.Phase)
	}
	if j.Report != nil {
		if j.Report.Summary != "" {
			out("  result     %s", printable(j.Report.Summary))
		}
		for _, c := range j.Report.Changes {
			out("  %-10s %s", c.Action, printable(c.Address))
		}
	}
	if j.Failure != nil {
		out("  failure    %s", printable(firstLine(j.Failure.Message)))
		printFailure(w, j.Failure, j.Report)
		return
	}
	if j.Report != nil {
		printHosts(w, j.Report.Hosts, false, "")
	}
}

// printSpec prints what a playbook run was asked to do.
func printSpec(out func(string, ...any), s orchestrator.JobSpec) {
	if s.Play == nil {
		return
	}
	out("  playbook   %s (%.19s…)", printable(s.Play.Playbook.Path), s.Play.Playbook.Digest)
	if s.Schedule != "" {
		out("  schedule   %s", printable(s.Schedule))
	}
	if words := s.Flags(); len(words) > 0 {
		out("  with       %s", printable(orchestrator.ShellCommand(words...)))
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
