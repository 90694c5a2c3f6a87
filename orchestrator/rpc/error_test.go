package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/exocomp/exocomp/orchestrator"
)

func TestEveryCodeHasItsOwnStatus(t *testing.T) {
	for _, c := range orchestrator.Codes {
		s, ok := statusCodes[c]
		if !ok {
			t.Errorf("code %s has no status", c)
			continue
		}
		if back := domainCodes[s]; back != c {
			t.Errorf("code %s travels as %s and comes back as %s", c, s, back)
		}
	}
	if len(domainCodes) != len(orchestrator.Codes) {
		t.Errorf("%d statuses for %d codes", len(domainCodes), len(orchestrator.Codes))
	}
}

func TestErrorsCrossWhole(t *testing.T) {
	for _, c := range orchestrator.Codes {
		want := (&orchestrator.Error{Code: c, Message: "host key of web1 changed"}).
			WithOp("pin host").WithHint("exocomp host onboard --rotate %s", "web1")
		err := domainError(t.Context(), statusError(want))
		var got *orchestrator.Error
		if !errors.As(err, &got) {
			t.Fatalf("%s: got %T", c, err)
		}
		if *got != *want {
			t.Errorf("got %+v, want %+v", *got, *want)
		}
	}
}

func TestWrappedErrorKeepsCodeHintAndAllWords(t *testing.T) {
	inner := orchestrator.Errorf(orchestrator.CodeRefused, "creates may be lost").WithHint("say --accept-lost")
	err := domainError(t.Context(), statusError(fmt.Errorf("submit run: %w", inner)))
	if !errors.Is(err, orchestrator.ErrRefused) {
		t.Errorf("code = %s, want refused", orchestrator.CodeOf(err))
	}
	if got, want := err.Error(), "submit run: creates may be lost; say --accept-lost"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOtherErrorsOnTheServer(t *testing.T) {
	for _, test := range []struct {
		err  error
		want codes.Code
	}{
		{errors.New("disk on fire"), codes.Internal},
		{fmt.Errorf("read: %w", context.Canceled), codes.Canceled},
		{fmt.Errorf("read: %w", context.DeadlineExceeded), codes.DeadlineExceeded},
		{status.Error(codes.Unimplemented, "no"), codes.Unimplemented},
	} {
		if got := status.Code(statusError(test.err)); got != test.want {
			t.Errorf("%v: status %s, want %s", test.err, got, test.want)
		}
	}
}

func TestTransportErrorsAreSentences(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		ctx    context.Context
		status codes.Code
		want   orchestrator.Code
		says   string
	}{
		{t.Context(), codes.Unavailable, orchestrator.CodeUnavailable, "went away"},
		{t.Context(), codes.Unimplemented, orchestrator.CodeRefused, "same release"},
		{t.Context(), codes.ResourceExhausted, orchestrator.CodeInvalid, "64 MiB"},
		{t.Context(), codes.Unknown, orchestrator.CodeInternal, "call the daemon"},
		{ended, codes.Canceled, orchestrator.CodeCancelled, "context canceled"},
	} {
		err := domainError(test.ctx, status.Error(test.status, "the transport's words"))
		if got := orchestrator.CodeOf(err); got != test.want {
			t.Errorf("%s: code %s, want %s", test.status, got, test.want)
		}
		if !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %q does not say %q", test.status, err, test.says)
		}
	}
	for _, err := range []error{status.Error(codes.Canceled, ""), context.Canceled} {
		err = domainError(ended, err)
		if !errors.Is(err, context.Canceled) || orchestrator.CodeOf(err) != orchestrator.CodeCancelled {
			t.Errorf("%v is not cancelled by its context", err)
		}
	}
}
