package provider

import (
	"fmt"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

func TestFailureDetailIsBoundedAndPlain(t *testing.T) {
	report := &orchestrator.Report{Task: "install", LastLines: []string{"red: \x1b[31mfatal"}}
	for i := range maxReportedHosts + 3 {
		report.Hosts = append(report.Hosts, orchestrator.HostReport{
			Name: fmt.Sprintf("web%d", i), State: orchestrator.HostUnreachable, Message: "no route\nand more",
		})
	}
	report.Hosts = append(report.Hosts, orchestrator.HostReport{Name: "fine", State: orchestrator.HostOK})
	run := orchestrator.Run{ID: "run_1", Workspace: "edge", State: orchestrator.RunFailed, Steps: []orchestrator.Step{
		{Seq: 1, Kind: orchestrator.StepTofuApply, State: orchestrator.StepSucceeded},
		{
			Seq: 2, Kind: orchestrator.StepSSHWait, State: orchestrator.StepFailed, Report: report,
			Failure: &orchestrator.Failure{Code: orchestrator.CodeFailed, Message: "13 hosts are silent", Hint: "look at the network"},
		},
	}}
	if got, want := failureSummary(run), "Run run_1 of workspace edge failed at step 2, ssh-wait"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	got := failureDetail(run)
	for _, want := range []string{
		"13 hosts are silent", `task "install"`, "host web0: unreachable: no route", "and 3 more hosts", "red: ?[31mfatal",
		"Log: exocomp provision logs run_1", "Next: look at the network",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q:\n%s", want, got)
		}
	}
	for _, not := range []string{"fine", "\x1b", "and more", "web12"} {
		if strings.Contains(got, not) {
			t.Errorf("it says %q:\n%s", not, got)
		}
	}
}

func TestARunWithoutAFailedStepIsNamed(t *testing.T) {
	run := orchestrator.Run{ID: "run_1", State: orchestrator.RunCancelled}
	if got := failureSummary(run) + failureDetail(run); !strings.Contains(got, "Run run_1 is cancelled") {
		t.Error(got)
	}
}

func TestHostsKeepTheAddressAndTheNewestState(t *testing.T) {
	run := orchestrator.Run{Steps: []orchestrator.Step{
		{Report: &orchestrator.Report{Hosts: []orchestrator.HostReport{
			{Name: "v6", Address: "[2001:db8::1]:2222", State: orchestrator.HostReady}, {Name: "here", State: orchestrator.HostSkipped},
		}}},
		{},
		{Report: &orchestrator.Report{Hosts: []orchestrator.HostReport{{Name: "v6", State: orchestrator.HostChanged}}}},
	}}
	hosts := hostsOf(run)
	if h := hosts["v6"]; h.Address.ValueString() != "2001:db8::1" || h.Port.ValueInt64() != 2222 || h.State != "changed" {
		t.Errorf("v6 is %+v", h)
	}
	if h := hosts["here"]; !h.Address.IsNull() || !h.Port.IsNull() || h.State != "skipped" {
		t.Errorf("here is %+v", h)
	}
}
