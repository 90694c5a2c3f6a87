package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator/internal/ledger"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/exocomp/exocomp/orchestrator/rpc/rpctest"
)

// configured writes a settings file whose daemon has its data in dir.
func configured(t *testing.T, dir string) string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "exocomp.hcl")
	if err := os.WriteFile(config, []byte("data_dir = \""+dir+"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}

func TestDoctorNamesADirectoryThatOthersMayWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	got := run(t, nil, "doctor", "--config", configured(t, dir))
	if got.code != exitFailed || !strings.Contains(got.out, "may be written by other users") || !strings.Contains(got.out, "chmod go-w "+dir) {
		t.Errorf("doctor: %+v", got)
	}
}

func TestDoctorReadsTheLedgerOfADaemonThatIsDown(t *testing.T) {
	dir := t.TempDir()
	config := configured(t, dir)
	if got := run(t, nil, "doctor", "--config", config); strings.Contains(got.out, "ledger") {
		t.Errorf("before the first start: %+v", got)
	}
	path := filepath.Join(dir, "ledger.db")
	l, err := ledger.Open(t.Context(), path, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := run(t, nil, "doctor", "--config", config); !strings.Contains(got.out, path) || strings.Contains(got.out, "BAD  ledger") {
		t.Errorf("a sound ledger: %+v", got)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteAt([]byte(strings.Repeat("x", int(info.Size()/2))), info.Size()/2); err != nil {
		t.Fatal(err)
	}
	if got := run(t, nil, "doctor", "--config", config); got.code != exitFailed || !strings.Contains(got.out, "is damaged") {
		t.Errorf("a damaged ledger: %+v", got)
	}
}

// settled writes a settings file whose daemon has its socket in dir.
func settled(t *testing.T, dir string) string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "exocomp.hcl")
	text := fmt.Sprintf("data_dir = %q\nruntime_dir = %q\n", t.TempDir(), dir)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}

// plainly executes a command line that names no socket.
func plainly(t *testing.T, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	code := Run(t.Context(), args, Stdio{In: strings.NewReader(""), Out: &out, Err: &errs}, rpctest.Version)
	return outcome{code, out.String(), errs.String()}
}

// TestDoctorAsksTheDaemonOfTheSettings: without a socket that a person named it
// looks where the settings say that the daemon listens, and says that other
// commands do not.
func TestDoctorAsksTheDaemonOfTheSettings(t *testing.T) {
	for _, name := range []string{rpc.SocketEnv, rpc.TokenFileEnv, "EXOCOMP_CONFIG"} {
		t.Setenv(name, "")
	}
	for _, name := range []string{"XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "HOME"} {
		t.Setenv(name, t.TempDir())
	}
	svc := rpctest.NewService()
	d := rpctest.Serve(t, svc)
	config := settled(t, filepath.Dir(d.Socket))
	svc.Status.ConfigFile = config
	got := plainly(t, "doctor", "--config", config)
	for _, part := range []string{"ok   daemon", "ok   configuration  " + config, "next: export EXOCOMP_SOCKET=" + d.Socket} {
		if !strings.Contains(got.out, part) {
			t.Errorf("doctor lacks %q: %+v", part, got)
		}
	}
	if got := run(t, d, "doctor", "--config", config); strings.Contains(got.out, "export") {
		t.Errorf("whoever named the socket need not be told: %+v", got)
	}
	t.Setenv(rpc.SocketEnv, d.Socket)
	if got := plainly(t, "doctor"); !strings.Contains(got.out, "ok   configuration  "+config+" (the daemon's)") || strings.Contains(got.out, "export") {
		t.Errorf("the settings of the daemon that answers: %+v", got)
	}
	other := settled(t, t.TempDir())
	if got := plainly(t, "doctor", "--config", other); !strings.Contains(got.out, "warn configuration  "+other+", but the daemon that answers has read "+config) {
		t.Errorf("settings that the daemon has not read: %+v", got)
	}
	t.Setenv(rpc.SocketEnv, "")
	got = plainly(t, "doctor", "--config", other)
	if !strings.Contains(got.out, "BAD  daemon") || !strings.Contains(got.out, "start it: exocomp serve") || !strings.Contains(got.out, "--config "+other) {
		t.Errorf("the daemon of these settings is away: %+v", got)
	}
}

// TestDoctorStandsInColumns: what a check says begins where it does in the line
// above, and what to do has a line of its own.
func TestDoctorStandsInColumns(t *testing.T) {
	_, d := chain(t)
	got := run(t, d, "doctor", "--config", filepath.Join("testdata", "exocomp.hcl"))
	want := "" +
		"ok   tofu              1.12.6 /usr/bin/tofu\n" +
		"BAD  ansible-playbook  ansible is missing\n" +
		"                       next: install it\n" +
		"warn daemon            the runtime directory is not a tmpfs\n"
	if !strings.HasSuffix(got.out, want) {
		t.Errorf("doctor prints\n%s\nwant at its end\n%s", got.out, want)
	}
}

func TestServeNamesEveryMistakeAtOnce(t *testing.T) {
	got := run(t, nil, "serve", "--config", "/nope")
	if got.code != exitUsage || !strings.Contains(got.err, "no such configuration file: /nope") {
		t.Errorf("serve: %+v", got)
	}
	if os.Getuid() == 0 && !strings.Contains(got.err, "--allow-root") {
		t.Errorf("serve as root: %+v", got)
	}
}
