package sandbox_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/sandbox"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.ShimCommand {
		os.Exit(sandbox.ExecMain())
	}
	os.Exit(m.Run())
}

// runShim starts a shim as a supervisor does and returns the tool's output.
func runShim(t *testing.T, s sandbox.Spec) (string, error) {
	t.Helper()
	link, end, err := sandbox.NewLink()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = link.Close() }()
	var out bytes.Buffer
	cmd := exec.Command("/proc/self/exe", sandbox.ShimCommand)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.ExtraFiles = []*os.File{end}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = end.Close()
	execErr := link.Exec(s)
	_ = cmd.Wait()
	return out.String(), execErr
}

func TestShimBecomesTheTool(t *testing.T) {
	dir := t.TempDir()
	out, err := runShim(t, sandbox.Spec{
		Argv: []string{"/bin/sh", "-c", `printf '%s|%s|' "$A" "$PWD"; env | tr '\n' ' '; [ -e /proc/$$/fd/3 ] && echo spec descriptor left`},
		Env:  []string{"A=b\xffc", "PATH=/usr/bin:/bin"},
		Dir:  dir,
	})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out, "b\xffc|"+dir+"|") {
		t.Errorf("the tool saw %q, want its environment byte for byte and its directory", out)
	}
	if strings.Contains(out, "HOME=") {
		t.Errorf("the tool inherited an environment: %q", out)
	}
	if strings.Contains(out, "left") {
		t.Error("the tool inherited the descriptor of its spec")
	}
}

func TestShimSaysWhyThereIsNoTool(t *testing.T) {
	for name, c := range map[string]struct {
		spec sandbox.Spec
		want string
	}{
		"missing executable": {sandbox.Spec{Argv: []string{"/nowhere/tofu"}}, "execute /nowhere/tofu: no such file or directory"},
		"missing directory":  {sandbox.Spec{Argv: []string{"/bin/true"}, Dir: "/nowhere"}, "enter the working directory: chdir /nowhere: no such file or directory"},
		"unknown tier":       {sandbox.Spec{Argv: []string{"/bin/true"}, Policy: sandbox.Policy{Tier: "strict"}}, `sandbox tier "strict" is unknown: use off`},
		"no command":         {sandbox.Spec{}, "no command is given"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := runShim(t, c.spec)
			if err == nil || err.Error() != c.want {
				t.Errorf("error = %v, want %q", err, c.want)
			}
		})
	}
}

func TestShimWithoutItsWholeSpecStartsNothing(t *testing.T) {
	link, end, err := sandbox.NewLink()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", sandbox.ShimCommand)
	cmd.ExtraFiles = []*os.File{end}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = end.Close()
	_ = link.Close()
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 127 {
		t.Errorf("the shim ended with %v, want exit code 127", err)
	}
}

// A shim may be killed, by the kernel say, before or after its spec has come.
func TestAShimThatIsKilledIsTold(t *testing.T) {
	for name, die := range map[string]func(*os.File){
		"before": func(end *os.File) { _ = end.Close() },
		"after": func(end *os.File) {
			_, _ = end.Read(make([]byte, 1)) // there is more, unread
			_ = end.Close()
		},
	} {
		link, end, err := sandbox.NewLink()
		if err != nil {
			t.Fatal(err)
		}
		dead := make(chan struct{})
		go func() { defer close(dead); die(end) }()
		if name == "before" {
			<-dead
		}
		err = link.Exec(sandbox.Spec{Argv: []string{"/bin/true"}})
		if err == nil || !strings.Contains(err.Error(), "killed before it could, so nothing ran") {
			t.Errorf("%s: %v", name, err)
		}
		<-dead
		_ = link.Close()
	}
}

func TestPolicyValidate(t *testing.T) {
	for _, tier := range []sandbox.Tier{"", sandbox.Off} {
		if err := (sandbox.Policy{Tier: tier}).Validate(); err != nil {
			t.Errorf("tier %q: %v", tier, err)
		}
	}
	if err := (sandbox.Policy{Tier: "x"}).Validate(); orchestrator.CodeOf(err) != orchestrator.CodeInvalid {
		t.Errorf("an unknown tier gives %v, want an invalid error", err)
	}
}
