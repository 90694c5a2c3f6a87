package play_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/ansible"
	"github.com/exocomp/exocomp/orchestrator/internal/ansible/supervised"
	"github.com/exocomp/exocomp/orchestrator/internal/hostkeys"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/internal/steps/play"
	"github.com/exocomp/exocomp/orchestrator/internal/steps/steptest"
	"github.com/exocomp/exocomp/orchestrator/playbook"
)

func TestMain(m *testing.M) { steptest.Main(m) }

func TestStepConforms(t *testing.T) {
	steptest.Run(t, steptest.Suite{Kind: orchestrator.StepAnsiblePlay, Phase: "play", New: newHandler})
}

// A handoff's play pins its hosts itself, once.
func TestHandoffConforms(t *testing.T) {
	steptest.Run(t, steptest.Suite{Kind: orchestrator.StepAnsiblePlay, Phase: "play", New: func(t *testing.T, s *steptest.Site) jobs.Handler {
		s.Ledger.Chain.Kind = orchestrator.RunHandoff
		return newHandler(t, s)
	}})
}

func newHandler(t *testing.T, s *steptest.Site) jobs.Handler {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "site.yml"), []byte("- hosts: all\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	snapshot, err := playbook.Take(t.Context(), root, "site.yml")
	if err != nil {
		t.Fatal(err)
	}
	s.Ledger.Chain.Spec.Playbook = orchestrator.PlaybookRef{Path: root + "/site.yml", Entry: "site.yml", Digest: snapshot.Digest}
	s.Ledger.Admitted = []orchestrator.Admission{{Workspace: s.Ledger.Row.Name, Host: "web1", Login: orchestrator.LoginAutomation}}
	install := ansible.Install{Path: s.Ansible(t), Version: "2.14.18"}
	return &play.Handler{
		Ledger:         s.Ledger,
		Pinner:         &hostkeys.Pinner{Store: s.Ledger},
		Runner:         &supervised.Runner{Pins: s.Ledger, FleetKey: s.Key, Locate: func(context.Context) (ansible.Install, error) { return install, nil }},
		Snapshots:      archive{snapshot},
		AutomationUser: "exocomp",
	}
}

// archive is a store of one snapshot.
type archive struct{ *playbook.Snapshot }

func (a archive) Open(string) (io.ReadCloser, error) {
	return io.NopCloser(a.NewReader()), nil
}
