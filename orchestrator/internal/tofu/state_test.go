package tofu

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A replacement that creates first, cut short: tofu lists the old object behind
// the new one, under the same address.
func TestADeposedObjectIsNotTheCurrentOne(t *testing.T) {
	state, err := parseState([]byte(`{"format_version":"1.0","terraform_version":"1.12.6","values":{"root_module":{
		"resources":[
			{"address":"t.a","mode":"managed","type":"t","name":"a","values":{"id":"new"}},
			{"address":"t.a","mode":"managed","type":"t","name":"a","values":{"id":"old"},"deposed_key":"0b5e"}
		],
		"child_modules":[{"address":"module.m","resources":[
			{"address":"module.m.t.b","mode":"managed","type":"t","name":"b","values":{"id":"old"},"deposed_key":"1c2f"}
		]}]
	}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(State{"t.a": "new"}, state); diff != "" {
		t.Errorf("state differs (-want +got):\n%s", diff)
	}
}
