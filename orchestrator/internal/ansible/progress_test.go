package ansible

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/exocomp/exocomp/orchestrator"
)

func read(t *testing.T, lines ...string) *Progress {
	t.Helper()
	p, err := ReadEvents(strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const (
	aPlay    = `{"event":"play","play":"Site","id":"p1","pattern":"web","hosts":2}`
	aFact    = `{"event":"result","host":"web1","task":"Gathering Facts","status":"ok","implicit":true}`
	aSkip    = `{"event":"result","host":"web1","task":"Maybe","status":"skipped"}`
	aFailure = `{"event":"result","host":"web1","task":"Break","status":"failed","message":"disk\nfull"}`
	anEnd    = `{"event":"end"}`
)

func TestReportFollowsTheTotals(t *testing.T) {
	rescued := read(t, aPlay, aFact, aFailure, `{"event":"stats","host":"web1","ok":2,"changed":1,"failed":0}`, anEnd)
	want := []orchestrator.HostReport{{Name: "web1", State: orchestrator.HostChanged, OK: 2, Changed: 1}}
	if diff := cmp.Diff(want, rescued.Report().Hosts); diff != "" {
		t.Errorf("a rescued failure (-want +got):\n%s", diff)
	}
	if err := Verdict(End{}, rescued, Scope{}); err != nil {
		t.Errorf("a rescued failure is %v", err)
	}
	failed := read(t, aPlay, aFact, aFailure, `{"event":"stats","host":"web1","ok":1,"failed":1}`, anEnd)
	want = []orchestrator.HostReport{{Name: "web1", State: orchestrator.HostFailed, Message: "disk full", Task: "Break", OK: 1}}
	if diff := cmp.Diff(want, failed.Report().Hosts); diff != "" {
		t.Errorf("a failure (-want +got):\n%s", diff)
	}
	if got, want := failed.Report().Summary, "1 host(s): 1 failed"; got != want {
		t.Errorf("summary is %q, want %q", got, want)
	}
}

func TestVerdict(t *testing.T) {
	matched := []string{aPlay, aFact}
	for name, c := range map[string]struct {
		end    End
		events []string
		scope  Scope
		want   []string // words of the failure; none: success
	}{
		"a task was skipped":  {events: append(matched, aSkip, anEnd)},
		"facts alone":         {events: append(matched, anEnd), want: []string{"converged nobody: ", "no tasks"}},
		"facts alone by tags": {events: append(matched, anEnd), scope: Scope{Args: []string{"--tags=a,b"}}, want: []string{"converged nobody: ", "--tags a,b"}},
		"no events":           {want: []string{"converged nobody: the playbook has no plays"}},
		"two plays for nobody": {
			events: []string{
				aPlay, `{"event":"no-hosts","play":"Site","id":"p1","pattern":"web"}`,
				`{"event":"play","id":"p2","pattern":"db"}`, `{"event":"no-hosts","id":"p2","pattern":"db"}`,
			},
			scope: Scope{Hosts: []string{"a", "b", "c", "d", "e", "f", "g"}},
			want:  []string{"converged nobody: hosts: web and hosts: db matched none of a, b, c, d, e and 2 more"},
		},
		"a signal": {end: End{Signal: 9}, events: []string{aPlay, `{"event":"task","task":"Slow"}`}, want: []string{"signal 9 (killed)", `"Slow"`}},
		"an error before any task": {
			end: End{ExitCode: 4}, scope: Scope{LastLines: []string{"ERROR! 'tusks' is not a valid attribute", "", "The error appears"}},
			want: []string{"exit code 4", "'tusks' is not"},
		},
		"many hosts and tasks": {
			end: End{ExitCode: 2},
			events: []string{
				aPlay, aFailure, strings.Replace(aFailure, "web1", "web2", 1),
				`{"event":"result","host":"web3","task":"Greet","status":"unreachable","message":"x REMOTE HOST IDENTIFICATION HAS CHANGED y"}`,
			},
			want: []string{`task "Break" failed on web1, web2: disk full; task "Greet" could not reach web3: the host key is not the pinned one; `, "exocomp host onboard --rotate edge/web3"},
		},
		"an ignored failure": {events: []string{aPlay, strings.Replace(aFailure, `"message"`, `"ignored":true,"message"`, 1), anEnd}},
	} {
		t.Run(name, func(t *testing.T) {
			c.scope.Workspace = "edge"
			err := Verdict(c.end, read(t, c.events...), c.scope)
			if len(c.want) == 0 {
				if err != nil {
					t.Fatalf("the verdict is %v, want none", err)
				}
				return
			}
			wantCode(t, err, orchestrator.CodeFailed, c.want...)
		})
	}
}

func TestExitCodesInWords(t *testing.T) {
	for _, code := range []int{1, 2, 3, 4, 5, 6, 8, 99, 250} {
		if exitWords(code) == exitWords(77) {
			t.Errorf("exit code %d has no words of its own", code)
		}
	}
}

func TestWarningsNeedAPlayThatDidSomething(t *testing.T) {
	unmatched := []string{`{"event":"play","play":"DB","id":"p2","pattern":"db"}`, `{"event":"no-hosts","play":"DB","id":"p2","pattern":"db"}`}
	if w := read(t, unmatched...).Warnings(); len(w) != 0 {
		t.Errorf("a run that converged nobody also warns: %q", w)
	}
	w := read(t, append(unmatched, aPlay, aSkip)...).Warnings()
	if diff := cmp.Diff([]string{`play "DB" matched no hosts (hosts: db)`}, w); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// The words of a real sshd, by way of wait_for_connection and of a task.
func TestARefusedLoginIsToldFromAHostThatIsNotThere(t *testing.T) {
	p := NewProgress()
	for host, message := range map[string]string{
		"web1": "timed out waiting for ping module test: Data could not be sent to remote host \"192.0.2.1\". Make sure this host can be reached over ssh: " +
			"Warning: Permanently added something.\r\nroot@192.0.2.1: Permission denied (publickey).\r\n",
		"web2": "Failed to connect to the host via ssh: ops@web2: Permission denied (publickey,password).",
		"web3": "Failed to connect to the host via ssh: ssh: connect to host 192.0.2.3 port 22: Connection refused",
	} {
		p.Add(Event{Kind: EventResult, Host: host, Task: "Wait for a login", Status: StatusUnreachable, Message: message})
	}
	r := p.Report()
	if got := LoginRefused(r); !slices.Equal(got, []string{"web1", "web2"}) {
		t.Errorf("refused by %v, want web1 and web2", got)
	}
	if want := "the login as root@192.0.2.1 was refused: Permission denied (publickey)"; r.Hosts[0].Message != want {
		t.Errorf("message %q, want %q", r.Hosts[0].Message, want)
	}
}

// Ansible's totals say ok of a host that a play could not reach and does not
// mind.
func TestAHostThatNobodyReachedIsNotConverged(t *testing.T) {
	lost := func(host string) []string {
		return []string{
			`{"event":"result","host":"` + host + `","task":"Greet","status":"unreachable","ignored":true,"message":"x"}`,
			`{"event":"stats","host":"` + host + `","ok":1,"changed":0,"failed":0}`,
		}
	}
	alone := read(t, append(append([]string{aPlay}, lost("web2")...), anEnd)...)
	err := Verdict(End{}, alone, Scope{})
	if err == nil || !strings.Contains(err.Error(), "converged nobody: no task reached web2") {
		t.Errorf("verdict on a play that reached nobody: %v", err)
	}
	both := read(t, append(append([]string{aPlay, aSkip}, lost("web2")...), anEnd)...)
	if err := Verdict(End{}, both, Scope{}); err != nil {
		t.Errorf("verdict where another host was reached: %v", err)
	}
	if h := both.Report().Hosts[1]; h.State != orchestrator.HostUnreachable || h.OK != 0 {
		t.Errorf("report: %+v, want unreachable", h)
	}
	if w := both.Warnings(); len(w) != 1 || !strings.Contains(w[0], "no task reached web2") {
		t.Errorf("warnings %q", w)
	}
}
