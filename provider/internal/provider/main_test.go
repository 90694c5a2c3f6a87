package provider

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What the tests of this package share: a tofu, the provider's binary, and a CLI
// configuration that makes tofu take it.
var (
	tofuPath  string
	cliConfig string
	goPath    string
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	scratch, err := os.MkdirTemp("", "provider-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	if err := prepare(scratch); err != nil {
		fmt.Fprintln(os.Stderr, "prepare the tests of the provider:", err)
		return 1
	}
	return m.Run()
}

// prepare builds the provider and points tofu and the acceptance tests at it.
// Nothing of the caller's own OpenTofu settings counts.
func prepare(scratch string) error {
	cache, err := where("cache")
	if err != nil {
		return err
	}
	if goPath, err = where("go"); err != nil {
		return err
	}
	tofuPath = filepath.Join(cache, "bin", "tofu")
	if _, err := os.Stat(tofuPath); err != nil {
		return fmt.Errorf("no tofu: run make setup: %w", err)
	}
	bin := filepath.Join(scratch, "bin")
	build := exec.CommandContext(context.Background(), goPath, "build", "-buildvcs=false", "-ldflags=-s -w",
		"-o", filepath.Join(bin, "terraform-provider-exocomp"), "../../cmd/terraform-provider-exocomp")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	cliConfig = filepath.Join(scratch, "dev.tofurc")
	overrides := fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"exocomp/exocomp\" = %q\n    \"hashicorp/exocomp\" = %q\n  }\n  direct {}\n}\n", bin, bin)
	if err := os.WriteFile(cliConfig, []byte(overrides), 0o600); err != nil {
		return err
	}
	empty := filepath.Join(scratch, "empty.tofurc")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		return err
	}
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "TF_") || strings.HasPrefix(name, "EXOCOMP_") {
			if err := os.Unsetenv(name); err != nil {
				return err
			}
		}
	}
	for name, value := range map[string]string{
		"TF_ACC_TERRAFORM_PATH":     tofuPath,
		"TF_ACC_PROVIDER_NAMESPACE": "hashicorp",
		"TF_ACC_PROVIDER_HOST":      "registry.opentofu.org",
		"TF_CLI_CONFIG_FILE":        empty,
		"CHECKPOINT_DISABLE":        "1",
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

// where asks the build where something is.
func where(what string) (string, error) {
	out, err := exec.CommandContext(context.Background(), "../../../tools/where", what).Output()
	if err != nil {
		return "", fmt.Errorf("tools/where %s: %w", what, err)
	}
	return strings.TrimSpace(string(out)), nil
}
