package sshwait

import (
	"strings"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

// Whatever the reason may be, the command that goes on can be typed.
func TestASilentHostsFailureSaysHowToGoOn(t *testing.T) {
	results := []HostResult{{Name: "web1", Address: "192.0.2.1:22", Err: plain("connection refused", nil)}}
	local := []orchestrator.HostReport{{Name: "here", State: orchestrator.HostSkipped}}
	for _, c := range []struct {
		origin orchestrator.StepOrigin
		want   string
	}{
		{orchestrator.OriginRun, "correct the configuration, then: exocomp workspace apply edge --wait && exocomp provision resume edge"},
		{orchestrator.OriginCaller, "correct the configuration, then: tofu apply, where the exocomp_provision is"},
	} {
		run := &orchestrator.Run{
			Workspace: "edge", Spec: orchestrator.RunSpec{SSHWait: 5 * time.Minute},
			Steps: []orchestrator.Step{{Kind: orchestrator.StepTofuApply, Origin: c.origin}},
		}
		f := outcome(results, local, run.Spec.SSHWait, hint(run)).Failure
		if f == nil || !strings.Contains(f.Hint, "exocomp provision resume edge --ssh-wait 10m;") || !strings.HasSuffix(f.Hint, c.want) {
			t.Errorf("failure = %+v, want both ways to go on", f)
		}
		if want := "SSH did not answer within 5m on 1 of 1 host(s) (1 local one(s) apart): web1"; f != nil && !strings.HasPrefix(f.Message, want) {
			t.Errorf("message %q, want %q", f.Message, want)
		}
	}
}

func TestDurationsAreShortAndMeanTheSame(t *testing.T) {
	for _, d := range []time.Duration{time.Second, 10 * time.Second, time.Minute, 90 * time.Second, 10 * time.Minute, time.Hour, 61 * time.Minute, 24 * time.Hour} {
		if back, err := time.ParseDuration(short(d)); err != nil || back != d {
			t.Errorf("short(%s) = %q, which is %s, %v", d, short(d), back, err)
		}
	}
}
