package provider

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-log/tflogtest"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// onLog calls fn with each line that the provider writes to its log.
func onLog(t *testing.T, fn func(line string)) context.Context {
	t.Helper()
	r, w := io.Pipe()
	t.Cleanup(func() { _ = w.Close() })
	go func() {
		var line strings.Builder
		buf := make([]byte, 1)
		for {
			if _, err := r.Read(buf); err != nil {
				return
			}
			if line.WriteByte(buf[0]); buf[0] == '\n' {
				fn(line.String())
				line.Reset()
			}
		}
	}()
	return tflogtest.RootLogger(t.Context(), w)
}

func TestInsistingOnADaemonThatIsAway(t *testing.T) {
	const long = time.Hour
	cut := orchestrator.Errorf(orchestrator.CodeUnavailable, "the daemon went away during the call")
	refused := orchestrator.Errorf(orchestrator.CodeRefused, "no")
	for name, c := range map[string]struct {
		stopped  bool // until the log says that it is tried again
		unknown  bool
		patience time.Duration
		answers  []error // of the calls
		want     error
		tries    bool // there is a line in the log
	}{
		"there":                 {patience: long, answers: []error{nil}},
		"back after a restart":  {stopped: true, patience: long, answers: []error{nil}, tries: true},
		"away during the call":  {patience: long, answers: []error{cut, nil}, tries: true},
		"away for good":         {patience: 2 * time.Second, answers: slices.Repeat([]error{cut}, 20), want: orchestrator.ErrUnavailable, tries: true},
		"no patience":           {answers: []error{cut}, want: orchestrator.ErrUnavailable},
		"another mistake":       {patience: long, answers: []error{refused}, want: orchestrator.ErrRefused},
		"not known where it is": {unknown: true, patience: long, want: orchestrator.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := newFakeDaemon(t)
			if c.stopped {
				fake.server.Stop()
			}
			said := make(chan struct{})
			tried := false
			ctx := onLog(t, func(line string) {
				if strings.Contains(line, "the daemon is away, trying again") && !tried {
					tried = true
					if c.stopped {
						fake.server.Start()
					}
					close(said)
				}
			})
			d := &daemon{options: rpc.ClientOptions{Socket: fake.server.Socket, Version: "test"}, unknown: c.unknown, patience: c.patience}
			calls := 0
			client, err := d.insist(ctx, func(*rpc.Client) error {
				calls++
				return c.answers[calls-1]
			})
			if client != nil {
				defer client.Close()
			}
			if !errors.Is(err, c.want) || (client == nil) != (err != nil) {
				t.Errorf("client %v, error %v, want %v", client, err, c.want)
			}
			if calls == 0 && len(c.answers) > 0 || c.want == nil && calls != len(c.answers) {
				t.Errorf("called %d times, want %d", calls, len(c.answers))
			}
			if c.tries {
				select {
				case <-said:
				case <-time.After(time.Minute):
					t.Error("the log does not say that it is tried again")
				}
			} else if tried {
				t.Error("it was tried again")
			}
		})
	}
}

// TestAnApplySurvivesARestartBeforeTheRequest holds that a daemon that is being
// restarted, in the moment in which an apply begins or ends, fails neither.
func TestAnApplySurvivesARestartBeforeTheRequest(t *testing.T) {
	p := newProtocol(t)
	back := func() context.Context {
		p.daemon.server.Stop()
		again := true
		return onLog(t, func(line string) {
			if again && strings.Contains(line, "the daemon is away") {
				again = false
				p.daemon.server.Start()
			}
		})
	}
	server := p.configured(newServer(&exocompProvider{version: "test", patience: time.Hour}))
	nothing := p.pack(tftypes.NewValue(p.typ, nil))
	in := p.pack(p.value(p.inputs(1)))
	plan, err := server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: provisionType, PriorState: nothing, Config: in, ProposedNewState: in,
	})
	if err != nil || len(plan.Diagnostics) > 0 {
		t.Fatal(plan, err)
	}
	done, err := server.ApplyResourceChange(back(), &tfprotov6.ApplyResourceChangeRequest{
		TypeName: provisionType, PriorState: nothing, Config: in, PlannedState: plan.PlannedState, PlannedPrivate: plan.PlannedPrivate,
	})
	if err != nil || len(done.Diagnostics) > 0 {
		t.Fatal(done, err)
	}
	gone, err := server.ApplyResourceChange(back(), &tfprotov6.ApplyResourceChangeRequest{
		TypeName: provisionType, PriorState: done.NewState, Config: nothing, PlannedState: nothing, PlannedPrivate: done.Private,
	})
	if err != nil || len(gone.Diagnostics) > 0 || len(p.daemon.ends) != 1 {
		t.Errorf("%v, %v, ended %d times", gone, err, len(p.daemon.ends))
	}
}
