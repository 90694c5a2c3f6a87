package rpctest

import (
	"context"

	"github.com/exocomp/exocomp/orchestrator"
)

// EnsureRun implements [rpc.Provisions] by s.Ensure.
func (s *Service) EnsureRun(ctx context.Context, e orchestrator.EnsureRun, send func(orchestrator.Ensured) error) error {
	if err := e.Validate(); err != nil {
		return err
	}
	if s.Ensure == nil {
		return orchestrator.Errorf(orchestrator.CodeRefused, "the test has no answer to EnsureRun")
	}
	return s.Ensure(ctx, e, send)
}

// EndProvision implements [rpc.Provisions] by s.End.
func (s *Service) EndProvision(ctx context.Context, e orchestrator.EndProvision, send func(orchestrator.ProvisionEnd) error) error {
	if err := e.Validate(); err != nil {
		return err
	}
	if s.End == nil {
		return orchestrator.Errorf(orchestrator.CodeRefused, "the test has no answer to EndProvision")
	}
	return s.End(ctx, e, send)
}
