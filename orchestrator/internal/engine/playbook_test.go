package engine

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/internal/steps/onboard"
	"github.com/exocomp/exocomp/orchestrator/internal/steps/play"
	"github.com/exocomp/exocomp/orchestrator/inventory"
)

// yard is a Ledger of the workspace edge and its hosts: web1 is admitted, web2,
// web3 and web4 are not, here is local.
type yard struct {
	shelf
	newest orchestrator.Run
	pins   []orchestrator.Pin
	login  orchestrator.Login // of web1
}

func (y *yard) Admissions(context.Context, string) ([]orchestrator.Admission, error) {
	return []orchestrator.Admission{{Workspace: "edge", Host: "web1", Login: y.login}}, nil
}

func (y *yard) Runs(context.Context, orchestrator.RunFilter) ([]orchestrator.Run, error) {
	return []orchestrator.Run{y.newest}, nil
}

func (y *yard) Pins(context.Context, orchestrator.PinFilter) ([]orchestrator.Pin, error) {
	return y.pins, nil
}

// crew is both handlers. It notes what they were asked for, and fails for some
// hosts.
type crew struct {
	pinned, onboarded []string
	played            *play.Admitted
	badPin, badLogin  string // hosts that fail
	full              bool   // the ledger takes no pins, which is no host's failure
	stops             bool   // the onboarding comes to no host after the one that fails
	unplayable        bool   // there is no play
}

func (c *crew) Pin(_ context.Context, _ *jobs.Attempt, hosts []inventory.Host, _, _ string) (orchestrator.Outcome, error) {
	if c.full {
		return orchestrator.Fail(errors.New("record pins: database or disk is full"), &orchestrator.Report{}), nil
	}
	out := orchestrator.Outcome{Report: &orchestrator.Report{}}
	for _, h := range hosts {
		c.pinned = append(c.pinned, h.Name)
		r := orchestrator.HostReport{Name: h.Name, State: orchestrator.HostPinned}
		if h.Name == c.badPin {
			r.State = orchestrator.HostFailed
			out.Failure = &orchestrator.Failure{Code: orchestrator.CodeRefused, Message: "the key of " + h.Name + " changed\nfrom one to another"}
		}
		out.Report.Hosts = append(out.Report.Hosts, r)
	}
	return out, nil
}

func (c *crew) Admit(_ context.Context, _ *jobs.Attempt, r onboard.Admission) (orchestrator.Outcome, error) {
	out := orchestrator.Outcome{Report: &orchestrator.Report{}}
	for _, h := range r.Hosts {
		c.onboarded = append(c.onboarded, h.Name)
		if c.stops && out.Failure != nil {
			continue
		}
		line := orchestrator.HostReport{Name: h.Name, State: orchestrator.HostOK}
		if h.Name == c.badLogin {
			line.State = orchestrator.HostUnreachable
			out.Failure = &orchestrator.Failure{Code: orchestrator.CodeFailed, Message: "no login to " + h.Name}
		} else {
			out.Admit = append(out.Admit, orchestrator.Admission{Workspace: "edge", Host: h.Name})
		}
		out.Report.Hosts = append(out.Report.Hosts, line)
	}
	return out, nil
}

func (c *crew) Play(_ context.Context, _ *jobs.Attempt, ad play.Admitted) (orchestrator.Outcome, error) {
	c.played = &ad
	if c.unplayable {
		return orchestrator.Outcome{}, errors.New("the key file is gone")
	}
	return orchestrator.Outcome{Report: &orchestrator.Report{Summary: "played"}}, nil
}

// silentPort returns a port of this machine at which nobody answers.
func silentPort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().(*net.TCPAddr).Port
}

// bannerPort returns one at which an SSH server says its first line.
func bannerPort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = ln.Close()
		<-done
	})
	go func() {
		defer close(done)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("SSH-2.0-test\r\n"))
			_ = conn.Close()
		}
	}()
	return ln.Addr().(*net.TCPAddr).Port
}

// site returns an engine over a yard and a crew, and an attempt of a playbook run.
func site(t *testing.T, y *yard, c *crew, spec orchestrator.JobSpec) (*Engine, func() *jobs.Attempt) {
	t.Helper()
	banner := bannerPort(t)
	hosts, err := json.Marshal(map[string]any{
		"web1": map[string]any{"ansible_host": "192.0.2.1"},
		"web2": map[string]any{"ansible_host": "127.0.0.1", "ansible_port": banner},
		"web3": map[string]any{"ansible_host": "127.0.0.1", "ansible_port": banner},
		"web4": map[string]any{"ansible_host": "127.0.0.1", "ansible_port": silentPort(t)},
		"here": map[string]any{"ansible_connection": "local"},
	})
	if err != nil {
		t.Fatal(err)
	}
	inv, err := inventory.Derive("edge", map[string]inventory.Output{inventory.OutputHosts: {Value: hosts}})
	if err != nil {
		t.Fatal(err)
	}
	content, err := inventory.Render(inv)
	if err != nil {
		t.Fatal(err)
	}
	y.row = &orchestrator.Inventory{Workspace: "edge", Content: content, Hosts: inv.HostNames()}
	y.newest.Spec.SSHWait = 300 * time.Millisecond
	dir, err := os.MkdirTemp("", "eng") // short, for the sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	spec.Play = &orchestrator.PlaySpec{Playbook: orchestrator.PlaybookRef{Path: "/site.yml"}}
	job := orchestrator.Job{
		ID: "job_1", Kind: orchestrator.JobPlaybookRun, Workspace: "edge", StartedAt: time.Now(), Spec: spec,
		Attempt: orchestrator.Attempt{ID: "attempt1", Token: orchestrator.NewSecret("token")},
	}
	e := New(Config{Ledger: y, Publisher: &press{}, Logger: slog.New(slog.DiscardHandler), Handlers: Handlers{Onboard: c, Play: c}})
	return e, func() *jobs.Attempt {
		a, err := jobs.NewAttempt(jobs.Config{DataDir: dir, RuntimeDir: dir, Queue: quiet{}}, job)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
}

// quiet is a queue that takes progress.
type quiet struct{ jobs.Queue }

func (quiet) Progress(context.Context, orchestrator.JobID, string, string) error { return nil }

func TestAPlaybookRunAdmitsWhoIsMissing(t *testing.T) {
	handoff := orchestrator.Run{ID: "run_1", Kind: orchestrator.RunHandoff}
	for name, c := range map[string]struct {
		spec      orchestrator.JobSpec
		newest    orchestrator.Run
		crew      crew
		onboarded []string
		without   []string // left out of the play
		failure   []string // parts
		unplayed  bool
	}{
		"a silent host":                      {failure: []string{"SSH did not answer", "web4"}, unplayed: true},
		"a silent host, keep going":          {spec: orchestrator.JobSpec{KeepGoing: true}, onboarded: []string{"web2", "web3"}, without: []string{"web4"}, failure: []string{"the play did its work on the others; not admitted: SSH did not answer", "web4"}},
		"limited to others":                  {spec: orchestrator.JobSpec{Args: []string{"--limit=web1:web2"}}, onboarded: []string{"web2"}},
		"limited to the admitted":            {spec: orchestrator.JobSpec{Args: []string{"--limit=web1,here"}, NoAdmit: true}},
		"not to be admitted":                 {spec: orchestrator.JobSpec{NoAdmit: true}, failure: []string{"3 host(s) of tf:edge are not admitted (--no-admit): web2, web3, web4"}, unplayed: true},
		"checked":                            {spec: orchestrator.JobSpec{Args: []string{"--check"}}, failure: []string{"--check admits nobody", "web2, web3, web4"}, unplayed: true},
		"checked, keep going":                {spec: orchestrator.JobSpec{Args: []string{"--check"}, KeepGoing: true}, without: []string{"web2", "web3", "web4"}, failure: []string{"on the others; not admitted: 3 host(s)"}},
		"a changed key":                      {spec: orchestrator.JobSpec{Args: []string{"--limit=web2,web3"}}, crew: crew{badPin: "web2"}, failure: []string{"the key of web2 changed"}, unplayed: true},
		"a changed key, keep going":          {spec: orchestrator.JobSpec{Args: []string{"--limit=web2,web3"}, KeepGoing: true}, crew: crew{badPin: "web2"}, onboarded: []string{"web3"}, without: []string{"web2"}, failure: []string{"not admitted: the key of web2 changed; from one to another"}},
		"a failed onboarding":                {spec: orchestrator.JobSpec{Args: []string{"--limit=web2,web3"}}, crew: crew{badLogin: "web3"}, onboarded: []string{"web2", "web3"}, failure: []string{"no login to web3"}, unplayed: true},
		"a failed onboarding, keep going":    {spec: orchestrator.JobSpec{Args: []string{"--limit=web2,web3"}, KeepGoing: true}, crew: crew{badLogin: "web3"}, onboarded: []string{"web2", "web3"}, without: []string{"web3"}, failure: []string{"not admitted: no login to web3"}},
		"all of the others fail, keep going": {spec: orchestrator.JobSpec{KeepGoing: true}, crew: crew{badPin: "web2", badLogin: "web3"}, onboarded: []string{"web3"}, without: []string{"web2", "web3", "web4"}, failure: []string{"SSH did not answer", "the key of web2 changed", "no login to web3"}},
		"a full disk, keep going":            {spec: orchestrator.JobSpec{KeepGoing: true}, crew: crew{full: true}, failure: []string{"disk is full; not admitted: SSH did not answer", "web4"}, unplayed: true},
		"not come to, keep going":            {spec: orchestrator.JobSpec{Args: []string{"--limit=web2,web3"}, KeepGoing: true}, crew: crew{badLogin: "web2", stops: true}, onboarded: []string{"web2", "web3"}, without: []string{"web2", "web3"}, failure: []string{"not admitted: no login to web2"}},
		"no play, keep going":                {spec: orchestrator.JobSpec{KeepGoing: true}, crew: crew{unplayable: true}, onboarded: []string{"web2", "web3"}, without: []string{"web4"}, failure: []string{"the key file is gone; not admitted: SSH did not answer", "web4"}},
		"after a handoff":                    {newest: handoff},
	} {
		t.Run(name, func(t *testing.T) {
			y := &yard{newest: c.newest}
			e, attempt := site(t, y, &c.crew, c.spec)
			out, err := e.playbookRun(t.Context(), attempt())
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(c.crew.onboarded, c.onboarded) {
				t.Errorf("onboarded %q, want %q", c.crew.onboarded, c.onboarded)
			}
			if c.newest.Kind == orchestrator.RunHandoff && !slices.Equal(c.crew.pinned, []string{"web2", "web3", "web4"}) {
				t.Errorf("pinned %q, want those without a pin", c.crew.pinned)
			}
			if (out.Failure == nil) != (len(c.failure) == 0) {
				t.Fatalf("failure %+v, want %q", out.Failure, c.failure)
			}
			for _, part := range c.failure {
				if !strings.Contains(out.Failure.Message, part) {
					t.Errorf("failure %q, want %q", out.Failure.Message, part)
				}
			}
			if c.unplayed != (c.crew.played == nil) {
				t.Fatalf("played %+v", c.crew.played)
			}
			if c.unplayed {
				return
			}
			if left := slices.Sorted(slices.Values(c.crew.played.Without)); !slices.Equal(left, c.without) {
				t.Errorf("played without %q, want %q", left, c.without)
			}
			if c.crew.badLogin == "" && len(out.Admit) != len(c.onboarded) {
				t.Errorf("admitted %v, want %q", out.Admit, c.onboarded)
			}
			for _, x := range out.Admit {
				if slices.Contains(c.without, x.Host) {
					t.Errorf("admitted %s, which was left out", x.Host)
				}
			}
			if len(out.Report.Hosts) != len(c.without) {
				t.Errorf("lines %+v, want one for each of %q", out.Report.Hosts, c.without)
			}
		})
	}
}

// A daemon that takes an attempt up goes on with what the one before decided,
// though hosts answer or fail otherwise by now.
func TestAnAttemptKeepsItsDecision(t *testing.T) {
	c := &crew{badPin: "web2"}
	e, attempt := site(t, &yard{}, c, orchestrator.JobSpec{KeepGoing: true})
	first, err := e.playbookRun(t.Context(), attempt())
	if err != nil {
		t.Fatal(err)
	}
	again := &crew{}
	e.cfg.Handlers.Onboard, e.cfg.Handlers.Play = again, again
	e.cfg.Publisher = &press{err: orchestrator.ErrRefused}
	second, err := e.playbookRun(t.Context(), attempt())
	if err != nil {
		t.Fatal(err)
	}
	if len(again.pinned) > 0 || !slices.Equal(again.onboarded, c.onboarded) || second.Failure.Message != first.Failure.Message {
		t.Errorf("pinned %q, onboarded %q, failure %q; before %q and %q", again.pinned, again.onboarded, second.Failure.Message, c.onboarded, first.Failure.Message)
	}
}

// Where nobody is left there is nothing to play.
func TestNobodyIsLeftToPlayAgainst(t *testing.T) {
	c := &crew{}
	e, attempt := site(t, &yard{}, c, orchestrator.JobSpec{KeepGoing: true, NoAdmit: true})
	row := *e.Ledger.(*yard).row
	inv, err := inventory.Derive("edge", map[string]inventory.Output{inventory.OutputHosts: {Value: json.RawMessage(`{"web2": {"ansible_host": "192.0.2.2"}}`)}})
	if err != nil {
		t.Fatal(err)
	}
	if row.Content, err = inventory.Render(inv); err != nil {
		t.Fatal(err)
	}
	row.Hosts = inv.HostNames()
	e.Ledger.(*yard).row = &row
	out, err := e.playbookRun(t.Context(), attempt())
	if err != nil || c.played != nil || out.Failure == nil || out.Failure.Code != orchestrator.CodeRefused {
		t.Errorf("%+v, %v, played %v; want a refusal and no play", out, err, c.played)
	}
}

// A key file that an inventory names is a person's to grant, unless the host is
// logged in to without it.
func TestAnUngrantedKeyFileIsRefused(t *testing.T) {
	inv, err := inventory.Derive("edge", map[string]inventory.Output{inventory.OutputHosts: {Value: json.RawMessage(
		`{"web1": {"ansible_host": "192.0.2.1", "ansible_ssh_private_key_file": "/keys/one"}}`)}})
	if err != nil {
		t.Fatal(err)
	}
	content, err := inventory.Render(inv)
	if err != nil {
		t.Fatal(err)
	}
	row := orchestrator.Inventory{Workspace: "edge", Content: content, Hosts: inv.HostNames()}
	j := orchestrator.Job{Workspace: "edge", Spec: orchestrator.JobSpec{Play: &orchestrator.PlaySpec{Playbook: orchestrator.PlaybookRef{Path: "/site.yml"}}}}
	for name, c := range map[string]struct {
		login   orchestrator.Login
		granted []string
		refused bool
	}{
		"nobody granted it":      {login: orchestrator.LoginInventory, refused: true},
		"granted":                {login: orchestrator.LoginInventory, granted: []string{"/keys/one"}},
		"by the automation user": {login: orchestrator.LoginAutomation},
	} {
		e := New(Config{Ledger: &yard{login: c.login}, Publisher: &press{}, Logger: slog.New(slog.DiscardHandler)})
		_, err := e.missing(t.Context(), j, row, orchestrator.Run{}, c.granted)
		if f := orchestrator.FailureOf(err); c.refused != (f != nil) {
			t.Errorf("%s: %v", name, err)
		} else if f != nil && (f.Code != orchestrator.CodeRefused || !strings.Contains(f.Message, "--ssh-identity /keys/one")) {
			t.Errorf("%s: %+v, want a refusal that names the flag", name, f)
		}
	}
}
