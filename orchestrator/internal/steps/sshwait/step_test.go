package sshwait_test

import (
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/internal/steps/sshwait"
	"github.com/exocomp/exocomp/orchestrator/internal/steps/steptest"
)

func TestStepConforms(t *testing.T) {
	steptest.Run(t, steptest.Suite{
		Kind: orchestrator.StepSSHWait,
		New:  func(_ *testing.T, s *steptest.Site) jobs.Handler { return &sshwait.Handler{Ledger: s.Ledger} },
	})
}
