package script

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
)

// InventoryEnv names the inventory to print, `tf:edge` or `edge`.
const InventoryEnv = "EXOCOMP_INVENTORY"

// maxLinks bounds how many symbolic links are followed, as the kernel does.
const maxLinks = 40

// configured returns the workspace whose inventory is meant, or nothing for all
// of them. given is the environment's word; calledAs is argv[0], which Ansible
// makes of the name behind -i. That both name one and not the same is refused
// ([orchestrator.CodeInvalid]): whichever were taken, somebody meant the other.
func configured(given, calledAs string) (string, error) {
	linked, err := linkedName(calledAs)
	if err != nil {
		return "", err
	}
	if given == "" {
		return linked, nil
	}
	workspace := strings.TrimPrefix(given, orchestrator.InventoryPrefix)
	if err := orchestrator.ValidateWorkspaceName(workspace); err != nil {
		return "", orchestrator.Errorf(orchestrator.CodeInvalid, "%s=%s: %s", InventoryEnv, given, orchestrator.FailureOf(err).Message).
			WithHint("name one of: exocomp inventory list")
	}
	if linked != "" && linked != workspace {
		return "", orchestrator.Errorf(orchestrator.CodeInvalid, "%s is called as %s, but %s=%s",
			filepath.Base(calledAs), orchestrator.InventoryName(linked), InventoryEnv, given).
			WithHint("unset %s", InventoryEnv)
	}
	return workspace, nil
}

// linkedName returns the workspace after which a symbolic link to the executable
// is named, or nothing: the name by which it was called, else that of the first
// link on the way from there to the executable. So exocomp-inventory may be a link
// to tf:edge, which is a link to the executable.
func linkedName(calledAs string) (string, error) {
	path := calledAs
	if !strings.Contains(path, "/") {
		found, err := exec.LookPath(path)
		if err != nil {
			return "", nil // called by another name than its own: it says nothing
		}
		path = found
	}
	for range maxLinks {
		dir, name := filepath.Split(path)
		if workspace, ok := orchestrator.WorkspaceOfInventory(name); ok {
			if err := orchestrator.ValidateWorkspaceName(workspace); err != nil {
				return "", orchestrator.Errorf(orchestrator.CodeInvalid, "called as %s: %s", name, orchestrator.FailureOf(err).Message).
					WithHint("name the link after one of: exocomp inventory list")
			}
			return workspace, nil
		}
		target, err := os.Readlink(path)
		if err != nil {
			return "", nil // the executable itself
		}
		if !filepath.IsAbs(target) {
			target = dir + target // not joined: .. behind a link is not the name's
		}
		path = target
	}
	return "", nil
}
