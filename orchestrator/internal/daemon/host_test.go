package daemon

import (
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
)

func TestResolveHostReferences(t *testing.T) {
	known := []orchestrator.PinUser{
		{Workspace: "edge", Host: "web1"}, {Workspace: "edge", Host: "db1"}, {Workspace: "prod", Host: "web1"},
		{Workspace: "edge", Host: "db1"}, // two pins of one host
		{Workspace: "prod", Host: "edge"},
	}
	for ref, want := range map[string]orchestrator.PinUser{
		"edge/web1": {Workspace: "edge", Host: "web1"},
		"prod/web1": {Workspace: "prod", Host: "web1"},
		"db1":       {Workspace: "edge", Host: "db1"},
		"edge/db1":  {Workspace: "edge", Host: "db1"},
		"edge":      {Workspace: "prod", Host: "edge"}, // a host may be named like another workspace
	} {
		if got, err := resolve(ref, known); err != nil || got != want {
			t.Errorf("%s is %v (%v), want %v", ref, got, err, want)
		}
	}
	for ref, code := range map[string]orchestrator.Code{
		"web1":       orchestrator.CodeInvalid, // of two workspaces
		"":           orchestrator.CodeNotFound,
		"/":          orchestrator.CodeNotFound,
		"/web1":      orchestrator.CodeNotFound,
		"edge/":      orchestrator.CodeNotFound,
		"edge/web1/": orchestrator.CodeNotFound,
		"prod/db1":   orchestrator.CodeNotFound,
		"WEB1":       orchestrator.CodeNotFound,
		"*":          orchestrator.CodeNotFound,
	} {
		_, err := resolve(ref, known)
		if got := orchestrator.CodeOf(err); got != code {
			t.Errorf("%q: %v, want %s", ref, err, code)
			continue
		}
		if orchestrator.FailureOf(err).Hint == "" {
			t.Errorf("%q: no hint in %v", ref, err)
		}
	}
	_, err := resolve("web1", known)
	for _, part := range []string{"edge/web1", "prod/web1"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %s", err, part)
		}
	}
}
