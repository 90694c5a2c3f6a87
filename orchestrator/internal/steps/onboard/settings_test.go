package onboard

import (
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
)

// history is a Ledger of runs, the newest first.
type history struct {
	Ledger
	runs []orchestrator.Run
}

func (h history) Runs(_ context.Context, f orchestrator.RunFilter) (out []orchestrator.Run, _ error) {
	for _, r := range h.runs {
		if f.State == "" || r.State == f.State {
			out = append(out, r)
		}
	}
	return out, nil
}

func TestSettingsAreTheNewestSucceededRunsElseTheNewest(t *testing.T) {
	run := func(state orchestrator.RunState, identity string) orchestrator.Run {
		return orchestrator.Run{State: state, Spec: orchestrator.RunSpec{SSHIdentities: []string{identity}}}
	}
	failed, older, succeeded := run(orchestrator.RunFailed, "/failed"), run(orchestrator.RunFailed, "/older"), run(orchestrator.RunSucceeded, "/succeeded")
	for want, runs := range map[string][]orchestrator.Run{
		"/succeeded": {failed, succeeded, older},
		"/failed":    {failed, older},
		"":           nil,
	} {
		newest, err := Settings(t.Context(), history{runs: runs}, "edge")
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if len(newest.Spec.SSHIdentities) > 0 {
			got = newest.Spec.SSHIdentities[0]
		}
		if got != want {
			t.Errorf("settings of %q, want of %q", got, want)
		}
	}
}

// keyFile writes a private key without a passphrase.
func keyFile(t *testing.T, name string) string {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestGivenKeyFilesStandInPlaceOfRememberedOnes(t *testing.T) {
	given, remembered, gone := keyFile(t, "given"), keyFile(t, "remembered"), filepath.Join(t.TempDir(), "gone")
	dir, err := os.MkdirTemp("", "onb") // short, for the sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	chain := &orchestrator.Run{ID: "run_1", Workspace: "edge"}
	for name, c := range map[string]struct {
		chain      *orchestrator.Run
		given      []string
		remembered []string // by a standalone job; a chain's own
		want       []string
		warnings   int
		refused    string // part of the hint
	}{
		"given, in place of one that is gone":  {given: []string{given}, remembered: []string{gone}, want: []string{given}},
		"given, in place of one that is there": {given: []string{given}, remembered: []string{remembered}, want: []string{given}},
		"remembered":                           {remembered: []string{remembered}, want: []string{remembered}},
		"remembered, one is gone":              {remembered: []string{gone, remembered}, want: []string{remembered}, warnings: 1},
		"given, and not there":                 {given: []string{gone}, refused: "exocomp host onboard --rotate edge/web1 --wait --ssh-identity FILE"},
		"a chain's own, and not there":         {chain: chain, remembered: []string{gone}, refused: "exocomp provision resume edge --ssh-identity FILE"},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := jobs.NewAttempt(jobs.Config{DataDir: dir, RuntimeDir: dir}, orchestrator.Job{
				Workspace: "edge", Spec: orchestrator.JobSpec{SSHIdentities: c.given, Hosts: []string{"web1"}, Rotate: true},
				Attempt: orchestrator.Attempt{ID: "attempt1", Token: orchestrator.NewSecret("token")},
			})
			if err != nil {
				t.Fatal(err)
			}
			w := work{chain: c.chain, rotate: c.chain == nil}
			err = w.logIns(a, orchestrator.RunSpec{SSHIdentities: c.remembered})
			if c.refused != "" {
				if f := orchestrator.FailureOf(err); f == nil || !strings.Contains(f.Message, gone) || !strings.HasSuffix(f.Hint, c.refused) {
					t.Fatalf("error %v, want one that names %s and ends with %q", err, gone, c.refused)
				}
				return
			}
			if err != nil || !slices.Equal(w.identities, c.want) || len(w.warnings) != c.warnings {
				t.Errorf("identities %v, warnings %q, %v; want %v and %d", w.identities, w.warnings, err, c.want, c.warnings)
			}
		})
	}
}
