package rpc

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/exocomp/exocomp/orchestrator"
	exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"
)

// Conversions are pairs `xToWire`, `xFromWire`. The zero value and an absent
// message are the same on both sides, so that xFromWire(nil) is zero.

// convert maps f over list; an empty list is nil.
func convert[A, B any](list []A, f func(A) B) []B {
	if len(list) == 0 {
		return nil
	}
	out := make([]B, len(list))
	for i, a := range list {
		out[i] = f(a)
	}
	return out
}

// optional maps f over what p points to; nil stays nil.
func optional[A, B any](p *A, f func(*A) B) *B {
	if p == nil {
		return nil
	}
	b := f(p)
	return &b
}

func timeToWire(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func timeFromWire(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

func durationToWire(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}

func portToWire(p int) int64   { return int64(p) }
func portFromWire(p int64) int { return int(p) }

// enum converts between a domain's string constants and a generated enum whose
// value names are a prefix and the constant in upper snake case. What the
// other side does not know is empty here and _UNSPECIFIED there.
type enum[D ~string, W ~int32] struct {
	toWire   map[D]W
	fromWire map[W]D
}

func newEnum[D ~string, W ~int32](prefix string, values map[string]int32) enum[D, W] {
	e := enum[D, W]{toWire: make(map[D]W), fromWire: make(map[W]D)}
	for name, number := range values {
		if number == 0 {
			continue
		}
		d := D(strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, prefix)), "_", "-"))
		e.toWire[d], e.fromWire[W(number)] = W(number), d
	}
	return e
}

func (e enum[D, W]) wire(d D) W   { return e.toWire[d] }
func (e enum[D, W]) domain(w W) D { return e.fromWire[w] }

var (
	errorCodes       = newEnum[orchestrator.Code, exocompv1.Code]("CODE_", exocompv1.Code_value)
	roles            = newEnum[Role, exocompv1.Role]("ROLE_", exocompv1.Role_value)
	approvalPolicies = newEnum[orchestrator.ApprovalPolicy, exocompv1.ApprovalPolicy]("APPROVAL_POLICY_", exocompv1.ApprovalPolicy_value)
	runKinds         = newEnum[orchestrator.RunKind, exocompv1.RunKind]("RUN_KIND_", exocompv1.RunKind_value)
	runStates        = newEnum[orchestrator.RunState, exocompv1.RunState]("RUN_STATE_", exocompv1.RunState_value)
	stepKinds        = newEnum[orchestrator.StepKind, exocompv1.StepKind]("STEP_KIND_", exocompv1.StepKind_value)
	stepStates       = newEnum[orchestrator.StepState, exocompv1.StepState]("STEP_STATE_", exocompv1.StepState_value)
	stepOrigins      = newEnum[orchestrator.StepOrigin, exocompv1.StepOrigin]("STEP_ORIGIN_", exocompv1.StepOrigin_value)
	hostStates       = newEnum[orchestrator.HostState, exocompv1.HostState]("HOST_STATE_", exocompv1.HostState_value)
	jobKinds         = newEnum[orchestrator.JobKind, exocompv1.JobKind]("JOB_KIND_", exocompv1.JobKind_value)
	jobStates        = newEnum[orchestrator.JobState, exocompv1.JobState]("JOB_STATE_", exocompv1.JobState_value)
	scheduleKinds    = newEnum[orchestrator.ScheduleKind, exocompv1.ScheduleKind]("SCHEDULE_KIND_", exocompv1.ScheduleKind_value)
	fireStates       = newEnum[orchestrator.FireState, exocompv1.FireState]("FIRE_STATE_", exocompv1.FireState_value)
	pinSources       = newEnum[orchestrator.PinSource, exocompv1.PinSource]("PIN_SOURCE_", exocompv1.PinSource_value)
	logins           = newEnum[orchestrator.Login, exocompv1.Login]("LOGIN_", exocompv1.Login_value)
	publishedStates  = newEnum[PublishedState, exocompv1.PublishedState]("PUBLISHED_STATE_", exocompv1.PublishedState_value)
)
