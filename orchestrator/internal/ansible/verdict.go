package ansible

import (
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/exocomp/exocomp/orchestrator"
)

// End is how ansible-playbook ended.
type End struct {
	ExitCode int
	Signal   syscall.Signal // 0: it exited by itself
}

// Scope is what a run was meant for, to explain why it reached nobody.
type Scope struct {
	Workspace string   // that it was for; commands name hosts by it
	Hosts     []string // of its inventory
	Args      []string // as [ParseArgs] returned them
	Playbook  Playbook
	Again     string // the command that has it done once more, or empty
	// LastLines of the log: what Ansible says of a mistake before any task is
	// said only there.
	LastLines []string
}

// Verdict returns nil for a run that did its work. Every error is
// [orchestrator.CodeFailed]. A run in which no host has a task result did no
// work, whatever its exit code says: Ansible calls it a success.
func Verdict(end End, p *Progress, scope Scope) error {
	switch {
	case end.Signal != 0:
		return orchestrator.Errorf(orchestrator.CodeFailed, "ansible-playbook was ended by signal %d (%s)%s", int(end.Signal), end.Signal, during(p))
	case p.TaskResults == 0 && !p.anyFailed() && (end.ExitCode == 0 || scope.limitMatchesNobody()):
		return orchestrator.Errorf(orchestrator.CodeFailed, "converged nobody: %s", nobody(p, scope)).
			WithHint("compare hosts: and --limit with: exocomp inventory show %s", scope.Workspace)
	case end.ExitCode == 0:
		return nil
	case p.anyFailed():
		return hostsFailed(p, scope)
	default:
		return stopped(end, scope)
	}
}

// stopped says why Ansible gave up before any host failed, in terms of the
// person's own files.
func stopped(end End, scope Scope) error {
	c := complaintOf(scope.LastLines)
	if c.text == "" {
		return orchestrator.Errorf(orchestrator.CodeFailed, "ansible-playbook %s (exit code %d)", exitWords(end.ExitCode), end.ExitCode)
	}
	e := orchestrator.Errorf(orchestrator.CodeFailed, "ansible-playbook stopped (exit code %d): %s", end.ExitCode, c)
	hint := "correct it"
	if c.missing() {
		hint = "put it into the playbook's tree"
		if tree := scope.Playbook.tree(); tree != "" {
			hint += ", which is what lies below " + tree
		}
		hint += ", or install it for everybody: nothing else goes with a run"
	}
	if scope.Again != "" {
		hint += "; then: " + scope.Again
	}
	return e.WithHint("%s", hint)
}

func during(p *Progress) string {
	if p.Task == "" {
		return " before its first task"
	}
	return fmt.Sprintf(" during task %q", p.Task)
}

func (p *Progress) anyFailed() bool {
	for _, h := range p.hosts {
		if h.failed() != nil {
			return true
		}
	}
	return false
}

// nobody says why no host has a task result.
func nobody(p *Progress, scope Scope) string {
	var unmatched []string
	for _, x := range p.plays {
		if x.unmatched {
			unmatched = append(unmatched, x.pattern)
		}
	}
	limit := scope.option("--limit")
	among := fewNames(scope.Hosts)
	if limit != "" {
		among += " (with --limit " + limit + ")"
	}
	switch {
	case len(p.plays) == 0 && scope.limitMatchesNobody():
		return fmt.Sprintf("--limit %s matched none of %s", limit, fewNames(scope.Hosts))
	case len(p.plays) == 0:
		return "the playbook has no plays"
	case len(p.unreached()) > 0:
		return "no task reached " + fewNames(p.unreached()) + ", and the play ignores that (ignore_unreachable)"
	case len(unmatched) == len(p.plays):
		return fmt.Sprintf("hosts: %s matched none of %s", strings.Join(unmatched, " and hosts: "), among)
	}
	for _, o := range []string{"--tags", "--skip-tags", "--start-at-task"} {
		if v := scope.option(o); v != "" {
			return fmt.Sprintf("no task was left for any host (%s %s)", o, v)
		}
	}
	return "the plays that matched hosts have no tasks for them"
}

// option returns the value of a long option among the arguments, or nothing.
func (s Scope) option(name string) string {
	for _, a := range slices.Backward(s.Args) {
		if v, ok := strings.CutPrefix(a, name+"="); ok {
			return oneLine(v, maxMessage)
		}
	}
	return ""
}

// limitMatchesNobody reports that Ansible refused a --limit as a whole, which
// it does with exit code 1 and a line in the log alone
// (ansible/cli/__init__.py, get_host_list).
func (s Scope) limitMatchesNobody() bool {
	return slices.ContainsFunc(s.LastLines, func(line string) bool {
		return strings.Contains(line, "--limit does not match any hosts") ||
			strings.Contains(line, "--limit leaves us with no hosts to target")
	})
}

// exitWords explains an exit code without a failed host. The codes are bits in
// part: ansible/executor/task_queue_manager.py and ansible/cli/__init__.py.
func exitWords(code int) string {
	switch code {
	case 1:
		return "stopped with an error"
	case 2, 3:
		return "says that hosts failed"
	case 4:
		return "could not read the playbook or an inventory, or reach a host"
	case 5:
		return "was given options that it does not take"
	case 6:
		return "says that hosts failed and others could not be reached"
	case 8:
		return "broke the play off"
	case 99:
		return "was interrupted"
	case 250:
		return "met an error of its own that it did not expect"
	default:
		return "failed"
	}
}

// hostsFailed names the failing tasks with their hosts, most hosts first.
func hostsFailed(p *Progress, scope Scope) error {
	type group struct {
		failure
		hosts []string
	}
	var groups []*group
	changed := ""
	for _, h := range p.Report().Hosts { // in the order of names
		f := p.hosts[h.Name].failed()
		if f == nil {
			continue
		}
		if f.message == keyChanged && changed == "" {
			changed = scope.Workspace + "/" + h.Name
		}
		i := slices.IndexFunc(groups, func(g *group) bool { return g.task == f.task && g.unreachable == f.unreachable })
		if i < 0 {
			groups = append(groups, &group{failure: *f})
			i = len(groups) - 1
		}
		groups[i].hosts = append(groups[i].hosts, h.Name)
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return len(b.hosts) - len(a.hosts) })

	var parts []string
	for i, g := range groups {
		if i == 3 {
			parts = append(parts, fmt.Sprintf("and %d more tasks failed", len(groups)-i))
			break
		}
		what := fmt.Sprintf("task %q failed on %s", g.task, fewNames(g.hosts))
		if g.unreachable {
			what = fmt.Sprintf("task %q could not reach %s", g.task, fewNames(g.hosts))
		}
		if g.message != "" {
			what += ": " + scope.Playbook.Theirs(g.message)
		}
		parts = append(parts, what)
	}
	e := orchestrator.Errorf(orchestrator.CodeFailed, "%s", strings.Join(parts, "; "))
	if changed != "" {
		e = e.WithHint("check the key of %s out of band, then: exocomp host onboard --rotate %s", changed, changed)
	}
	return e
}

// fewNames joins the first names.
func fewNames(names []string) string {
	const few = 5
	switch {
	case len(names) == 0:
		return "no hosts"
	case len(names) > few:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
	default:
		return strings.Join(names, ", ")
	}
}
