package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/exocomp/exocomp/orchestrator"
	exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"
)

// statusCodes maps every domain code to the one gRPC code that carries it.
var statusCodes = map[orchestrator.Code]codes.Code{
	orchestrator.CodeInvalid:         codes.InvalidArgument,
	orchestrator.CodeNotFound:        codes.NotFound,
	orchestrator.CodeConflict:        codes.AlreadyExists,
	orchestrator.CodeRefused:         codes.FailedPrecondition,
	orchestrator.CodeFailed:          codes.Aborted,
	orchestrator.CodeUnavailable:     codes.Unavailable,
	orchestrator.CodeUnauthenticated: codes.Unauthenticated,
	orchestrator.CodeDenied:          codes.PermissionDenied,
	orchestrator.CodeCancelled:       codes.Canceled,
	orchestrator.CodeTimeout:         codes.DeadlineExceeded,
	orchestrator.CodeInternal:        codes.Internal,
}

// domainCodes is the inverse of statusCodes.
var domainCodes = func() map[codes.Code]orchestrator.Code {
	m := make(map[codes.Code]orchestrator.Code, len(statusCodes))
	for d, s := range statusCodes {
		m[s] = d
	}
	return m
}()

// errWentAway marks what the transport says of a daemon that is not there: the
// call may or may not have been carried out.
var errWentAway = errors.New("connection lost")

// statusError returns err as the server answers it: a status with an
// ErrorDetail. A status, as the transport makes them, stays as it is.
func statusError(err error) error {
	if err == nil {
		return nil
	}
	var e *orchestrator.Error
	if !errors.As(err, &e) {
		if _, ok := status.FromError(err); ok {
			return err
		}
		switch {
		case errors.Is(err, context.Canceled):
			e = orchestrator.Errorf(orchestrator.CodeCancelled, "%w", err)
		case errors.Is(err, context.DeadlineExceeded):
			e = orchestrator.Errorf(orchestrator.CodeTimeout, "%w", err)
		default:
			e = orchestrator.Errorf(orchestrator.CodeInternal, "%w", err)
		}
	} else if err.Error() != e.Error() {
		// Wrapped: the code and hint are the inner error's, the words are all.
		f := orchestrator.FailureOf(err)
		e = &orchestrator.Error{Code: f.Code, Message: f.Message, Hint: f.Hint}
	}
	code, ok := statusCodes[e.Code]
	if !ok {
		code = codes.Internal
	}
	message := e.Message
	if message == "" && e.Err != nil {
		message = e.Err.Error()
	}
	s, derr := status.New(code, e.Error()).WithDetails(&exocompv1.ErrorDetail{
		Op: e.Op, Message: message, Hint: e.Hint,
	})
	if derr != nil {
		return status.Error(code, e.Error())
	}
	return s.Err()
}

// notUTF8 is what protobuf says of a text that it cannot send.
const notUTF8 = "invalid UTF-8"

// domainError returns what a call answered as an *orchestrator.Error: the
// daemon's own where the status carries a detail, a sentence about the
// transport otherwise. A call that ctx ended wraps its cause.
func domainError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err)
	}
	if d := detail(s); d != nil {
		code, ok := domainCodes[s.Code()]
		if !ok {
			code = orchestrator.CodeInternal
		}
		return &orchestrator.Error{Code: code, Op: d.GetOp(), Message: d.GetMessage(), Hint: d.GetHint()}
	}
	switch s.Code() {
	case codes.Canceled, codes.DeadlineExceeded:
		cause := ctx.Err()
		if cause == nil {
			cause = errors.New(s.Message())
		}
		return orchestrator.Errorf(domainCodes[s.Code()], "call the daemon: %w", cause)
	case codes.Unavailable:
		return (&orchestrator.Error{
			Code: orchestrator.CodeUnavailable, Message: "the daemon went away during the call",
			Err: fmt.Errorf("%w: %s", errWentAway, s.Message()),
		}).WithHint("see whether it runs: exocomp doctor")
	case codes.Unimplemented:
		return orchestrator.Errorf(orchestrator.CodeRefused, "the daemon does not know this call: %s", s.Message()).
			WithHint("install the same release on both ends, then restart the daemon")
	case codes.ResourceExhausted:
		return orchestrator.Errorf(orchestrator.CodeInvalid, "a message is larger than %d MiB: %s", MaxMessage>>20, s.Message())
	default:
		if strings.Contains(s.Message(), notUTF8) {
			return orchestrator.Errorf(orchestrator.CodeInvalid, "a name or path holds bytes that are not UTF-8").
				WithHint("rename it, then type the command again")
		}
		code, ok := domainCodes[s.Code()]
		if !ok {
			code = orchestrator.CodeInternal
		}
		return orchestrator.Errorf(code, "call the daemon: %s", s.Message())
	}
}

// detail returns the status's ErrorDetail, or nil.
func detail(s *status.Status) *exocompv1.ErrorDetail {
	for _, d := range s.Details() {
		if e, ok := d.(*exocompv1.ErrorDetail); ok {
			return e
		}
	}
	return nil
}
