package rpc

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// contractMethods returns the full names of all methods of the contract.
func contractMethods() []string {
	var names []string
	protoregistry.GlobalFiles.RangeFilesByPackage("exocomp.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			for j := range s.Methods().Len() {
				names = append(names, "/"+string(s.FullName())+"/"+string(s.Methods().Get(j).Name()))
			}
		}
		return true
	})
	return names
}

func TestEveryMethodHasARole(t *testing.T) {
	all := contractMethods()
	if len(all) == 0 {
		t.Fatal("the contract has no method")
	}
	for _, m := range all {
		if r := methodRoles[m]; r != RoleOperator && r != RoleReader {
			t.Errorf("method %s has role %q", m, r)
		}
	}
	for m := range methodRoles {
		if !slices.Contains(all, m) {
			t.Errorf("%s has a role and is no method of the contract", m)
		}
	}
}

func TestReaderMayOnlyRead(t *testing.T) {
	want := []string{
		"/exocomp.v1.DaemonService/Handshake",
		"/exocomp.v1.HostService/ListPins",
		"/exocomp.v1.InventoryService/GetInventory",
		"/exocomp.v1.InventoryService/GetStandingInventory",
		"/exocomp.v1.InventoryService/ListInventories",
		"/exocomp.v1.RunService/GetRun",
		"/exocomp.v1.RunService/ListRuns",
		"/exocomp.v1.ScheduleService/GetFire",
		"/exocomp.v1.ScheduleService/GetSchedule",
		"/exocomp.v1.ScheduleService/ListSchedules",
	}
	var got []string
	for m, need := range methodRoles {
		if !RoleOperator.may(need) {
			t.Errorf("an operator may not call %s", m)
		}
		if Role("").may(need) {
			t.Errorf("anybody may call %s", m)
		}
		if RoleReader.may(need) {
			got = append(got, m)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("a reader may call %v, want %v", got, want)
	}
}
