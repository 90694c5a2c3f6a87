package cli

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/exocomp/exocomp/orchestrator/rpc/rpctest"
)

// completed asks for what may stand at the end of a line, as a shell does, and
// returns the words without their descriptions and the directive.
func completed(t *testing.T, d *rpctest.Daemon, line ...string) (words []string, directive string) {
	t.Helper()
	got := run(t, d, append([]string{cobra.ShellCompRequestCmd}, line...)...)
	if got.code != exitDone {
		t.Fatalf("complete %q: %+v", line, got)
	}
	for l := range strings.SplitSeq(strings.TrimSpace(got.out), "\n") {
		if strings.HasPrefix(l, ":") {
			return words, l
		}
		word, _, _ := strings.Cut(l, "\t")
		words = append(words, word)
	}
	t.Fatalf("complete %q: %+v", line, got)
	return nil, ""
}

const (
	noFiles = ":4" // see cobra.ShellCompDirective
	byExt   = ":8"
	dirs    = ":16"
	files   = ":0"
)

func TestArgumentsComplete(t *testing.T) {
	_, d := chain(t)
	const run1, job2 = "run_00000000000000000000000001", "job_00000000000000000000000002"
	for line, want := range map[string]string{
		"provision status ":               "edge " + run1 + noFiles,
		"provision status r":              run1 + noFiles,
		"provision resume e":              "edge" + noFiles,
		"provision resume edge ":          noFiles,
		"provision run ":                  "edge" + noFiles,
		"provision run edge ":             "yml yaml" + byExt,
		"workspace apply ":                "edge" + noFiles,
		"workspace add core ":             dirs,
		"workspace unlock edge ":          noFiles,
		"schedule show ":                  "nightly" + noFiles,
		"schedule add --kind ":            "play apply" + noFiles,
		"schedule add --target ":          "tf:edge" + noFiles,
		"schedule add --timezone ":        noFiles,
		"schedule add nightly -- ":        "yml yaml" + byExt,
		"inventory show ":                 "edge" + noFiles,
		"playbook run ":                   "yml yaml" + byExt,
		"playbook run --inventory ":       "tf:edge" + noFiles,
		"inventory link ":                 "tf:edge" + files,
		"inventory link tf:edge ":         dirs,
		"jobs show ":                      job2 + noFiles,
		"jobs logs ":                      job2 + noFiles,
		"jobs cancel ":                    noFiles, // it has ended
		"jobs redrive ":                   noFiles, // it was not interrupted
		"host onboard ":                   "edge/web1 edge/here" + noFiles,
		"host onboard edge/web1 ":         "edge/here" + noFiles,
		"host forget ":                    "edge/web1" + noFiles,
		"jobs list --state ":              "queued running succeeded failed cancelled interrupted" + noFiles,
		"jobs list --workspace ":          "edge" + noFiles,
		"jobs list ":                      noFiles,
		"events --run ":                   "edge " + run1 + noFiles,
		"workspace add --approval ":       "never destructive always" + noFiles,
		"provision run --ssh-wait ":       noFiles,
		"provision run --ssh-identity ":   files,
		"provision resume --from ":        "tofu-apply ssh-wait host-onboard ansible-play" + noFiles,
		"handoff status ":                 "edge " + run1 + noFiles,
		"handoff run edge ":               "yml yaml" + byExt,
		"provision resume --playbook ":    "yml yaml" + byExt,
		"host known-hosts ":               "[192.0.2.1]:2222" + noFiles,
		"host known-hosts --workspace ed": "edge" + noFiles,
		"host known-hosts --workspace eg": noFiles,
		"completion ":                     "bash fish powershell zsh" + noFiles,
	} {
		words, directive := completed(t, d, strings.Split(line, " ")...)
		if got := strings.Join(words, " ") + directive; got != want {
			t.Errorf("exocomp %s<tab>: %s, want %s", line, got, want)
		}
	}
}

// TestCompletionIsSilentWithoutADaemon, and quick where one does not answer.
func TestCompletionIsSilentWithoutADaemon(t *testing.T) {
	dir, err := os.MkdirTemp("", "mute") // not t.TempDir: a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	socket := filepath.Join(dir, "mute.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if _, err := rpc.EnsureTokens(dir); err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]*rpctest.Daemon{"none": nil, "mute": {Socket: socket}} {
		began := time.Now()
		if words, directive := completed(t, d, "provision", "status", ""); len(words) != 0 || directive != noFiles {
			t.Errorf("%s: completed to %v%s", name, words, directive)
		}
		if took := time.Since(began); took > 5*completeWithin {
			t.Errorf("%s: it took %s", name, took)
		}
	}
}
