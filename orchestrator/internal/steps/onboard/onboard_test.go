package onboard_test

import (
	"context"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/ansible"
	"github.com/exocomp/exocomp/orchestrator/internal/ansible/supervised"
	"github.com/exocomp/exocomp/orchestrator/internal/hostkeys"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/internal/steps/onboard"
	"github.com/exocomp/exocomp/orchestrator/internal/steps/steptest"
)

func TestMain(m *testing.M) { steptest.Main(m) }

func TestStepConforms(t *testing.T) {
	steptest.Run(t, steptest.Suite{Kind: orchestrator.StepHostOnboard, Phase: "onboard", New: newHandler})
}

func newHandler(t *testing.T, s *steptest.Site) jobs.Handler {
	install := ansible.Install{Path: s.Ansible(t), Version: "2.14.18"}
	return &onboard.Handler{
		Ledger:         s.Ledger,
		Pinner:         &hostkeys.Pinner{Store: s.Ledger},
		Runner:         &supervised.Runner{Pins: s.Ledger, FleetKey: s.Key, Locate: func(context.Context) (ansible.Install, error) { return install, nil }},
		AutomationUser: "exocomp",
		FleetPublic:    "ssh-ed25519 AAAA fleet",
	}
}
