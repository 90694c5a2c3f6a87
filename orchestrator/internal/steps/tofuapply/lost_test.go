package tofuapply

import (
	"path/filepath"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/tofu"
)

// The create half of a replacement is suspected as long as the state holds the
// old object under the address, and found with the new one.
func TestAReplacementIsNotFoundInTheOldObject(t *testing.T) {
	configuration := func(word string) string {
		return "resource \"terraform_data\" \"web\" {\n  triggers_replace = \"" + word + "\"\n}\noutput \"hosts\" {\n  value = {}\n}\n"
	}
	s := newSite(t, configuration("a"))
	if out := s.handle("a1", orchestrator.JobSpec{}); !out.Succeeded() {
		t.Fatalf("apply: %+v", out.Failure)
	}
	a := &attempt{Handler: s.handler, Attempt: s.attempt("a2", orchestrator.JobSpec{})}
	if err := a.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	state, err := a.module.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const web = "terraform_data.web"
	plan := tofu.Plan{Creates: []tofu.PlannedCreate{{Address: web, PriorID: state[web]}}}
	lost, err := a.missing(t.Context(), plan, filepath.Join(t.TempDir(), "none"), false)
	if err != nil || len(lost) != 1 || lost[0].PriorID != state[web] {
		t.Fatalf("missing %+v, %v, want what was to replace %s", lost, err, state[web])
	}
	// A journal that somebody removed proves no more than one of another boot.
	if removed, err := a.missing(t.Context(), plan, filepath.Join(t.TempDir(), "none"), true); err != nil || len(removed) != 1 {
		t.Errorf("without a journal: missing %+v, %v, want all that the state lacks", removed, err)
	}
	if found, still, err := Suspects(t.Context(), a.module, lost); err != nil || len(found) != 0 || len(still) != 1 {
		t.Errorf("with the old object: found %v, still suspected %+v, %v", found, still, err)
	}
	s.write("main.tf", configuration("b"))
	if out := s.handle("a3", orchestrator.JobSpec{}); !out.Succeeded() {
		t.Fatalf("replace: %+v", out.Failure)
	}
	if found, _, err := Suspects(t.Context(), a.module, lost); err != nil || len(found) != 1 {
		t.Errorf("with a new object: found %v, %v", found, err)
	}
}
