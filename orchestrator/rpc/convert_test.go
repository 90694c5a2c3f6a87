package rpc

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	"github.com/exocomp/exocomp/orchestrator"
)

// constants are the values that a string type with constants may have.
var constants = map[reflect.Type][]string{
	typeOf[orchestrator.Code]():           strs(orchestrator.Codes),
	typeOf[orchestrator.RunKind]():        strs(orchestrator.RunKinds),
	typeOf[orchestrator.RunState]():       strs(orchestrator.RunStates),
	typeOf[orchestrator.StepKind]():       strs(orchestrator.StepKinds),
	typeOf[orchestrator.StepState]():      strs(orchestrator.StepStates),
	typeOf[orchestrator.JobKind]():        strs(orchestrator.JobKinds),
	typeOf[orchestrator.JobState]():       strs(orchestrator.JobStates),
	typeOf[orchestrator.ScheduleKind]():   strs(orchestrator.ScheduleKinds),
	typeOf[orchestrator.FireState]():      strs(orchestrator.FireStates),
	typeOf[orchestrator.StepOrigin]():     {"run", "caller"},
	typeOf[orchestrator.ApprovalPolicy](): {"never", "destructive", "always"},
	typeOf[orchestrator.PinSource]():      {"first-use", "stated", "rotated"},
	typeOf[orchestrator.Login]():          {"automation", "inventory"},
	typeOf[orchestrator.HostState](): {
		"ok", "changed", "failed", "unreachable", "skipped", "waiting", "ready", "pinned",
	},
	typeOf[PublishedState](): {"agrees", "differs", "missing"},
	typeOf[Role]():           {"operator", "reader"},
}

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

func strs[S ~string](list []S) []string {
	return convert(list, func(s S) string { return string(s) })
}

func TestEnumsHoldExactlyTheDomainsConstants(t *testing.T) {
	checkEnum(t, errorCodes)
	checkEnum(t, roles)
	checkEnum(t, approvalPolicies)
	checkEnum(t, runKinds)
	checkEnum(t, runStates)
	checkEnum(t, stepKinds)
	checkEnum(t, stepStates)
	checkEnum(t, stepOrigins)
	checkEnum(t, hostStates)
	checkEnum(t, jobKinds)
	checkEnum(t, jobStates)
	checkEnum(t, scheduleKinds)
	checkEnum(t, fireStates)
	checkEnum(t, pinSources)
	checkEnum(t, logins)
	checkEnum(t, publishedStates)
}

func checkEnum[D ~string, W ~int32](t *testing.T, e enum[D, W]) {
	t.Helper()
	want := slices.Sorted(slices.Values(constants[typeOf[D]()]))
	var got []string
	for d, w := range e.toWire {
		got = append(got, string(d))
		if back := e.domain(w); back != d {
			t.Errorf("%s comes back as %s", d, back)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%T: the contract has %v, the domain %v", *new(D), got, want)
	}
	if e.wire("") != 0 || e.domain(0) != "" {
		t.Errorf("%T: empty is not unspecified", *new(D))
	}
}

func TestConversionsLoseNothing(t *testing.T) {
	t.Run("Status", roundTrip(statusToWire, statusFromWire))
	t.Run("Workspace", roundTrip(workspaceToWire, workspaceFromWire))
	t.Run("Run", roundTrip(runToWire, runFromWire))
	t.Run("RunSpec", roundTrip(runSpecToWire, runSpecFromWire))
	t.Run("RunFilter", roundTrip(runFilterToWire, runFilterFromWire))
	t.Run("ResumeSpec", roundTrip(resumeSpecToWire, resumeSpecFromWire))
	t.Run("Job", roundTrip(jobToWire, jobFromWire))
	t.Run("JobFilter", roundTrip(jobFilterToWire, jobFilterFromWire))
	t.Run("ScheduleView", roundTrip(scheduleViewToWire, scheduleViewFromWire))
	t.Run("InventoryView", roundTrip(inventoryViewToWire, inventoryViewFromWire))
	t.Run("Pin", roundTrip(pinToWire, pinFromWire))
	t.Run("PinFilter", roundTrip(pinFilterToWire, pinFilterFromWire))
	t.Run("OnboardSpec", roundTrip(onboardSpecToWire, onboardSpecFromWire))
	t.Run("OnboardVars", roundTrip(onboardVarsToWire, onboardVarsFromWire))
	t.Run("SnapshotHeader", roundTrip(snapshotHeaderToWire, snapshotHeaderFromWire))
	t.Run("Event", roundTrip(eventToWire, eventFromWire))
	t.Run("EventFilter", roundTrip(eventFilterToWire, eventFilterFromWire))
}

// roundTrip draws values of D and sends them through the wire's bytes. Where
// every field of the value is set, so must every field of the message be: a
// field that either side forgot fails.
func roundTrip[D any, W proto.Message](toWire func(D) W, fromWire func(W) D) func(*testing.T) {
	same := cmp.Comparer(func(a, b orchestrator.Secret) bool { return a.Reveal() == b.Reveal() })
	trip := func(t rapid.TB, want D) W {
		sent := toWire(want)
		data, err := proto.Marshal(sent)
		if err != nil {
			t.Fatal(err)
		}
		got := sent.ProtoReflect().New().Interface().(W)
		if err := proto.Unmarshal(data, got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, fromWire(got), same); diff != "" {
			t.Errorf("lost on the way (-want +got):\n%s", diff)
		}
		return got
	}
	return func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			trip(t, draw(t, typeOf[D](), false).Interface().(D))
		})
		rapid.Check(t, func(t *rapid.T) {
			requireAllSet(t, trip(t, draw(t, typeOf[D](), true).Interface().(D)).ProtoReflect())
		})
		var nothing W
		if diff := cmp.Diff(*new(D), fromWire(nothing), same); diff != "" {
			t.Errorf("an absent message is not zero (-want +got):\n%s", diff)
		}
	}
}

// draw returns a value of type typ; with full, without a zero anywhere. A
// Secret stays empty: none crosses the contract.
func draw(t *rapid.T, typ reflect.Type, full bool) reflect.Value {
	v := reflect.New(typ).Elem()
	leave := func() bool { return !full && rapid.Bool().Draw(t, "leave") }
	if typ != typeOf[orchestrator.Secret]() && typ.Kind() != reflect.Struct && leave() {
		return v
	}
	switch {
	case typ == typeOf[orchestrator.Secret]():
	case typ == typeOf[time.Time]():
		if !leave() {
			v.Set(reflect.ValueOf(time.Unix(rapid.Int64Range(1, 1<<33).Draw(t, "s"), rapid.Int64Range(0, 1e9-1).Draw(t, "ns")).UTC()))
		}
	case constants[typ] != nil:
		v.SetString(rapid.SampledFrom(constants[typ]).Draw(t, typ.Name()))
	case typ.Kind() == reflect.String:
		v.SetString(rapid.StringN(1, 8, -1).Draw(t, "string"))
	case typ.Kind() == reflect.Bool:
		v.SetBool(true)
	case typ.Kind() == reflect.Int, typ.Kind() == reflect.Int64:
		v.SetInt(rapid.Int64Range(1, 1<<40).Draw(t, "int"))
	case typ.Kind() == reflect.Uint8:
		v.SetUint(uint64(rapid.ByteRange(1, 255).Draw(t, "byte")))
	case typ.Kind() == reflect.Pointer:
		v.Set(reflect.New(typ.Elem()))
		v.Elem().Set(draw(t, typ.Elem(), full))
	case typ.Kind() == reflect.Slice:
		for range rapid.IntRange(1, 3).Draw(t, "len") {
			instant := typ.Elem() == typeOf[time.Time]() // a list holds no zero one
			v.Set(reflect.Append(v, draw(t, typ.Elem(), full || instant)))
		}
	case typ.Kind() == reflect.Struct:
		for i := range typ.NumField() {
			v.Field(i).Set(draw(t, typ.Field(i).Type, full))
		}
	default:
		t.Fatalf("cannot draw a %s", typ)
	}
	return v
}

// requireAllSet fails for every field of m, at any depth, that is not set.
func requireAllSet(t *rapid.T, m protoreflect.Message) {
	if m.Descriptor().ParentFile().Package() != "exocomp.v1" {
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case !m.Has(f):
			t.Errorf("%s is not set", f.FullName())
		case f.Message() == nil:
		case f.IsList():
			for j := range m.Get(f).List().Len() {
				requireAllSet(t, m.Get(f).List().Get(j).Message())
			}
		default:
			requireAllSet(t, m.Get(f).Message())
		}
	}
}
