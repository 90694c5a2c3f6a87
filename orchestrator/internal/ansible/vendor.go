package ansible

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/child"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

// Where collections and roles lie in a directory of vendored content.
const (
	vendoredCollections = "collections"
	vendoredRoles       = "roles"
)

// vendorLimit bounds one ansible-galaxy.
const vendorLimit = 15 * time.Minute

// Vendor installs the collections and roles of a requirements file, absolute,
// into a directory, absolute. What the file names by relative paths is looked for
// beside it. scratch is a directory that nobody else uses meanwhile. The error is
// [orchestrator.CodeFailed] and says what ansible-galaxy said; the directory then
// holds whatever was installed by then.
func Vendor(ctx context.Context, install Install, requirements, into, scratch string) (err error) {
	galaxy := filepath.Join(filepath.Dir(install.Path), "ansible-galaxy")
	if _, err := exec.LookPath(galaxy); err != nil {
		return orchestrator.Errorf(orchestrator.CodeFailed, "ansible-galaxy is missing: it is not beside %s", install.Path).
			WithHint("install it there: it is part of ansible-core")
	}
	if err := refuseRoleNames(requirements, map[string]bool{}); err != nil {
		return err
	}
	env := append(baseEnv(scratch, scratch, searchPath(install.Path, os.Getenv("PATH"))), network(os.Environ())...)
	for _, kind := range []struct{ name, dir string }{{"role", vendoredRoles}, {"collection", vendoredCollections}} {
		dir := filepath.Join(into, kind.dir)
		if err := durable.Mkdir(dir); err != nil {
			return err
		}
		out, said, err := child.Run(ctx, child.Spec{
			Argv: []string{galaxy, kind.name, "install", "-r", requirements, "-p", dir},
			Env:  env, Dir: filepath.Dir(requirements), Limit: vendorLimit, Mortal: true,
		})
		text := string(out) + string(said)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case kind.name == "collection" && strings.Contains(text, "Expecting requirements file to be a dict"):
			// The old form, a list, names roles alone.
		case errors.Is(err, child.ErrLimit):
			return orchestrator.Errorf(orchestrator.CodeFailed, "ansible-galaxy did not install the %ss within %s", kind.name, vendorLimit)
		default:
			return orchestrator.Errorf(orchestrator.CodeFailed, "ansible-galaxy could not install the %ss: %s", kind.name, galaxyErrors(text)).
				WithHint("correct the requirements, then vendor them again")
		}
	}
	return nil
}

// network returns the variables by which programs find their way out.
func network(env []string) (out []string) {
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		if slices.Contains([]string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"}, strings.ToUpper(name)) {
			out = append(out, e)
		}
	}
	return out
}

// galaxyErrors returns what ansible-galaxy complains of, or all that it said.
func galaxyErrors(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.Contains(line, "ERROR") || strings.HasPrefix(line, "[WARNING]: - ") {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return oneLine(text, maxMessage)
	}
	return oneLine(strings.Join(lines, " "), maxMessage)
}

// Vendored lists what a directory of vendored content holds, each with its
// version where it has one, sorted.
func Vendored(dir string) (collections, roles []string, err error) {
	manifests, err := filepath.Glob(filepath.Join(dir, vendoredCollections, "ansible_collections", "*", "*", "MANIFEST.json"))
	if err != nil {
		return nil, nil, err
	}
	for _, m := range manifests {
		data, err := durable.ReadRegular(m, maxConfig)
		if err != nil {
			return nil, nil, err
		}
		var doc struct {
			Info struct{ Namespace, Name, Version string } `json:"collection_info"`
		}
		if err := json.Unmarshal(data, &doc); err != nil {
			return nil, nil, orchestrator.Errorf(orchestrator.CodeFailed, "read %s: %w", m, err)
		}
		collections = append(collections, oneLine(doc.Info.Namespace+"."+doc.Info.Name+" "+doc.Info.Version, maxMessage))
	}
	entries, err := os.ReadDir(filepath.Join(dir, vendoredRoles))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	for _, e := range entries {
		if e.IsDir() {
			roles = append(roles, oneLine(e.Name(), maxMessage))
		}
	}
	return collections, roles, nil
}

// vendorPaths are the variables by which a run finds vendored content, behind
// what the person's ansible.cfg names and before what the machine has.
func vendorPaths(cfg config, dir string) []string {
	if dir == "" {
		return nil
	}
	path := func(keys []string, vendored string, machine ...string) string {
		for _, k := range keys {
			if own := cfg.paths(k); len(own) > 0 {
				return strings.Join(append(own, vendored), ":")
			}
		}
		return strings.Join(append([]string{vendored}, machine...), ":")
	}
	return []string{
		"ANSIBLE_COLLECTIONS_PATH=" + path([]string{"collections_path", "collections_paths"}, filepath.Join(dir, vendoredCollections), "/usr/share/ansible/collections"),
		"ANSIBLE_ROLES_PATH=" + path([]string{"roles_path"}, filepath.Join(dir, vendoredRoles), "/usr/share/ansible/roles", "/etc/ansible/roles"),
	}
}
