package provider

import (
	"fmt"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
)

// maxReportedHosts bounds the hosts that an error names one by one.
const maxReportedHosts = 10

// failureSummary is the first line of the error for a run that did not succeed.
func failureSummary(run orchestrator.Run) string {
	s := run.FailedStep()
	if s == nil {
		return fmt.Sprintf("Run %s is %s", run.ID, run.State)
	}
	return fmt.Sprintf("Run %s of workspace %s %s at step %d, %s", run.ID, run.Workspace, run.State, s.Seq, s.Kind)
}

// failureDetail says what a person needs to correct the cause: why, which task,
// which hosts, the last lines, and where there is more.
func failureDetail(run orchestrator.Run) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	next := ""
	if s := run.FailedStep(); s != nil {
		if f := s.Failure; f != nil {
			line("%s", f.Message)
			next = f.Hint
		}
		if s.Report != nil {
			reportLines(line, s.Report)
		}
	}
	line("")
	line("Log: exocomp provision logs %s", run.ID)
	if next != "" {
		line("Next: %s", next)
	}
	return printable(strings.TrimSpace(b.String()))
}

func reportLines(line func(string, ...any), r *orchestrator.Report) {
	if r.Task != "" {
		line("task %q", r.Task)
	}
	named, more := 0, 0
	for _, h := range r.Hosts {
		switch h.State {
		case orchestrator.HostFailed, orchestrator.HostUnreachable, orchestrator.HostWaiting:
		default:
			continue
		}
		if named == maxReportedHosts {
			more++
			continue
		}
		named++
		text := fmt.Sprintf("host %s: %s", h.Name, h.State)
		if h.Task != "" && h.Task != r.Task {
			text += fmt.Sprintf(" in task %q", h.Task)
		}
		if first, _, _ := strings.Cut(h.Message, "\n"); first != "" {
			text += ": " + first
		}
		line("%s", text)
	}
	if more > 0 {
		line("and %d more hosts", more)
	}
	if len(r.LastLines) > 0 {
		line("")
		line("Last lines:")
		for _, l := range r.LastLines {
			line("  %s", l)
		}
	}
}
