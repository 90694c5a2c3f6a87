package orchestrator

import (
	"errors"
	"fmt"
	"strings"
)

// Code classifies an [Error]. It decides the gRPC status that carries the error
// over the contract and the exit code of the command that reports it.
type Code string

const (
	// CodeInvalid: the request is malformed; sending it again cannot succeed.
	CodeInvalid Code = "invalid"
	// CodeNotFound: a name or id is unknown.
	CodeNotFound Code = "not-found"
	// CodeConflict: another run, owner or content stands in the way.
	CodeConflict Code = "conflict"
	// CodeRefused: failing closed; the request is understood and will not be done.
	CodeRefused Code = "refused"
	// CodeFailed: the work was done and did not succeed.
	CodeFailed Code = "failed"
	// CodeUnavailable: the daemon is absent, draining or restarting; retry.
	CodeUnavailable Code = "unavailable"
	// CodeUnauthenticated: no token, or one the daemon does not know.
	CodeUnauthenticated Code = "unauthenticated"
	// CodeDenied: the token is known and may not do this.
	CodeDenied Code = "denied"
	// CodeCancelled: a person cancelled the work.
	CodeCancelled Code = "cancelled"
	// CodeTimeout: a deadline that the caller chose has passed.
	CodeTimeout Code = "timeout"
	// CodeInternal: a machine mistake; none of the others fits.
	CodeInternal Code = "internal"
)

// Codes lists every [Code], for the tests that hold the mapping tables complete.
var Codes = []Code{
	CodeInvalid, CodeNotFound, CodeConflict, CodeRefused, CodeFailed,
	CodeUnavailable, CodeUnauthenticated, CodeDenied, CodeCancelled,
	CodeTimeout, CodeInternal,
}

// Error is the one error type that crosses a package boundary with a meaning.
// Inside a package a bare verb phrase wraps a cause; at the edge an Error says
// what is wrong (Message) and what to type next (Hint).
type Error struct {
	Code    Code
	Op      string // the operation, a bare verb phrase: `open ledger`
	Message string // for people: lower case, no full stop
	Hint    string // the next thing to type, or empty
	Err     error  // the cause, or nil
}

// Errorf returns an Error with a formatted message. A %w verb sets the cause.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
}

// WithHint returns a copy of e that carries the next thing to type.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// WithOp returns a copy of e that names the operation.
func (e *Error) WithOp(op string) *Error {
	c := *e
	c.Op = op
	return &c
}

// Error returns `op: message; hint`, leaving out what is empty.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		b.WriteString(e.Op)
		b.WriteString(": ")
	}
	switch {
	case e.Message != "":
		b.WriteString(e.Message)
	case e.Err != nil:
		b.WriteString(e.Err.Error())
	default:
		b.WriteString(string(e.Code))
	}
	if e.Hint != "" {
		b.WriteString("; ")
		b.WriteString(e.Hint)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is a bare sentinel of the same code, so that
// errors.Is(err, ErrNotFound) holds for every not-found error.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Op == "" && t.Message == "" && t.Err == nil
}

// Sentinels to compare with errors.Is; they match by code alone.
var (
	ErrInvalid         = &Error{Code: CodeInvalid}
	ErrNotFound        = &Error{Code: CodeNotFound}
	ErrConflict        = &Error{Code: CodeConflict}
	ErrRefused         = &Error{Code: CodeRefused}
	ErrFailed          = &Error{Code: CodeFailed}
	ErrUnavailable     = &Error{Code: CodeUnavailable}
	ErrUnauthenticated = &Error{Code: CodeUnauthenticated}
	ErrDenied          = &Error{Code: CodeDenied}
	ErrCancelled       = &Error{Code: CodeCancelled}
	ErrTimeout         = &Error{Code: CodeTimeout}
)

// CodeOf returns the code of the first [Error] in err's chain: empty for nil,
// [CodeInternal] where the chain has none.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}
