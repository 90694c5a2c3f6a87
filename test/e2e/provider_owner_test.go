package e2e

import (
	"fmt"
	"os"
	"path/filepath"
)

// mirrorConfig is providerConfig for applies of the daemon's own, which run
// `tofu init`: the provider is installed from a directory.
func (s *site) mirrorConfig() string {
	s.t.Helper()
	mirror := filepath.Join(s.dir, "mirror")
	dir := filepath.Join(mirror, "registry.opentofu.org", "exocomp", "exocomp", "0.0.1", "linux_amd64")
	binary, err := filepath.Abs("../../bin/terraform-provider-exocomp")
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = os.Link(binary, filepath.Join(dir, "terraform-provider-exocomp_v0.0.1"))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return s.writeFile("mirror.tofurc", fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", mirror))
}
