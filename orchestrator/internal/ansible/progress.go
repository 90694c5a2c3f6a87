package ansible

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/exocomp/exocomp/orchestrator"
)

// Bounds on what a run can make us remember.
const (
	maxHosts   = 100_000
	maxPlays   = 1_000
	maxMessage = 512 // bytes of a host's message in a report
)

// Progress is what the events so far say about a run. It is not safe for use
// by several goroutines at once.
type Progress struct {
	// Task is the newest task, for a line of progress.
	Task string
	// TaskResults counts what tasks reported about hosts, skipped ones too. Fact
	// gathering that nobody wrote does not count, nor does a host that a task
	// could not reach where the play ignores that.
	TaskResults int
	// Ended says that the run came to its own end.
	Ended bool

	plays []play
	hosts map[string]*hostProgress
}

type play struct {
	name, pattern, id string
	unmatched         bool
}

type hostProgress struct {
	results map[Status]int // of tasks that somebody wrote and the fact gathering
	failure *failure       // the newest that counts
	stats   *Event         // the totals, once the run is over
}

type failure struct {
	task, message string
	unreachable   bool
}

// NewProgress returns the progress of a run that has not begun.
func NewProgress() *Progress {
	return &Progress{hosts: map[string]*hostProgress{}}
}

// Add takes the next event.
func (p *Progress) Add(e Event) {
	switch e.Kind {
	case EventPlay:
		p.addPlay(e)
	case EventNoHosts:
		p.addPlay(e)
		if n := len(p.plays); n > 0 && p.plays[n-1].id == e.ID {
			p.plays[n-1].unmatched = true
		}
	case EventTask:
		p.Task = oneLine(e.Task, maxMessage)
	case EventResult:
		p.addResult(e)
	case EventStats:
		if h := p.host(e.Host); h != nil {
			h.stats = &e
		}
	case EventEnd:
		p.Ended = true
	}
}

// addPlay adds a play once: with `serial` each batch starts it again.
func (p *Progress) addPlay(e Event) {
	known := slices.ContainsFunc(p.plays, func(x play) bool { return x.id == e.ID })
	if !known && len(p.plays) < maxPlays {
		p.plays = append(p.plays, play{name: oneLine(e.Play, maxMessage), pattern: oneLine(e.Pattern, maxMessage), id: e.ID})
	}
}

func (p *Progress) addResult(e Event) {
	h := p.host(e.Host)
	if h == nil {
		return
	}
	h.results[e.Status]++
	if !e.Implicit && !(e.Status == StatusUnreachable && e.Ignored) {
		p.TaskResults++
	}
	if (e.Status == StatusFailed || e.Status == StatusUnreachable) && !e.Ignored {
		h.failure = &failure{
			task:        oneLine(e.Task, maxMessage),
			message:     brief(e.Message),
			unreachable: e.Status == StatusUnreachable,
		}
	}
}

// host returns the host's progress, nil for one too many.
func (p *Progress) host(name string) *hostProgress {
	name = oneLine(name, maxMessage)
	h := p.hosts[name]
	if h == nil && name != "" && len(p.hosts) < maxHosts {
		h = &hostProgress{results: map[Status]int{}}
		p.hosts[name] = h
	}
	return h
}

// Warnings names the plays that matched no hosts while others did, and the
// hosts that were not reached while others were.
func (p *Progress) Warnings() []string {
	var out []string
	for _, x := range p.plays {
		if x.unmatched && p.TaskResults > 0 {
			out = append(out, fmt.Sprintf("play %q matched no hosts (hosts: %s)", x.name, x.pattern))
		}
	}
	if ignored := p.unreached(); len(ignored) > 0 && p.TaskResults > 0 && !p.anyFailed() {
		out = append(out, "no task reached "+fewNames(ignored)+", and the play ignores that (ignore_unreachable)")
	}
	return out
}

// Report returns the run as the ledger keeps it; the caller adds LastLines.
func (p *Progress) Report() *orchestrator.Report {
	r := &orchestrator.Report{}
	count := map[orchestrator.HostState]int{}
	for name, h := range p.hosts {
		report := h.report(name)
		count[report.State]++
		r.Hosts = append(r.Hosts, report)
	}
	slices.SortFunc(r.Hosts, func(a, b orchestrator.HostReport) int { return strings.Compare(a.Name, b.Name) })
	for _, h := range r.Hosts {
		if h.Task != "" {
			r.Task = h.Task
			break
		}
	}
	var parts []string
	for _, s := range []orchestrator.HostState{
		orchestrator.HostChanged, orchestrator.HostOK, orchestrator.HostSkipped,
		orchestrator.HostFailed, orchestrator.HostUnreachable,
	} {
		if count[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[s], s))
		}
	}
	r.Summary = fmt.Sprintf("%d host(s)", len(r.Hosts))
	if len(parts) > 0 {
		r.Summary += ": " + strings.Join(parts, ", ")
	}
	return r
}

// failed returns what the host failed of, nil if it did not. Only the totals
// know that a failure was rescued.
func (h *hostProgress) failed() *failure {
	if h.stats == nil {
		return h.failure
	}
	switch {
	case h.stats.Failed == 0 && h.stats.Unreachable == 0:
		return nil
	case h.failure == nil:
		return &failure{unreachable: h.stats.Unreachable > 0}
	default:
		return h.failure
	}
}

// unreached reports whether no task got through to the host, which a play may
// ignore. Its totals then say ok.
func (h *hostProgress) unreached() bool {
	return h.results[StatusUnreachable] > 0 && h.results[StatusOK]+h.results[StatusChanged]+h.results[StatusFailed] == 0
}

// unreached returns the hosts that no task got through to, sorted.
func (p *Progress) unreached() []string {
	var names []string
	for name, h := range p.hosts {
		if h.unreached() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (h *hostProgress) report(name string) orchestrator.HostReport {
	r := orchestrator.HostReport{
		Name:    name,
		OK:      h.results[StatusOK] + h.results[StatusChanged],
		Changed: h.results[StatusChanged],
	}
	if h.stats != nil {
		r.OK, r.Changed = h.stats.OK, h.stats.Changed
	}
	switch f := h.failed(); {
	case f != nil:
		r.State, r.Task, r.Message = orchestrator.HostFailed, f.task, f.message
		if f.unreachable {
			r.State = orchestrator.HostUnreachable
		}
	case h.unreached():
		r.State, r.OK, r.Message = orchestrator.HostUnreachable, 0, "no task reached it, and the play ignores that"
	case r.Changed > 0:
		r.State = orchestrator.HostChanged
	case r.OK > 0:
		r.State = orchestrator.HostOK
	default:
		r.State = orchestrator.HostSkipped
	}
	return r
}

// What ssh says of a host key that does not match its pin, and what becomes of
// it in a message.
const (
	sshKeyChanged = "REMOTE HOST IDENTIFICATION HAS CHANGED"
	sshKeyRefused = "Host key verification failed"

	keyChanged = "the host key is not the pinned one"
	keyUnknown = "no host key is pinned for this address"
)

// refusedLogin is what ssh says of a login that no key opened.
var refusedLogin = regexp.MustCompile(`(\S+@\S+): (Permission denied \([^)]*\))`)

// loginRefused begins the message of a host that let nobody in.
const loginRefused = "the login as "

// LoginRefused returns the hosts of a report that were there and let nobody in.
func LoginRefused(r *orchestrator.Report) []string {
	var names []string
	for _, h := range r.Hosts {
		if strings.HasPrefix(h.Message, loginRefused) {
			names = append(names, h.Name)
		}
	}
	return names
}

// brief returns a message as one short line; ssh's banner becomes a sentence.
func brief(message string) string {
	switch {
	case strings.Contains(message, sshKeyChanged):
		return keyChanged
	case strings.Contains(message, sshKeyRefused):
		return keyUnknown
	}
	if m := refusedLogin.FindStringSubmatch(message); m != nil {
		return loginRefused + oneLine(m[1], maxMessage/2) + " was refused: " + oneLine(m[2], maxMessage/2)
	}
	return oneLine(message, maxMessage)
}

// oneLine returns s as printable text of at most size bytes without line
// breaks.
func oneLine(s string, size int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if len(s) <= size {
		return s
	}
	s = s[:size-len("…")]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "…"
}
