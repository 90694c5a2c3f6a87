package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/spf13/cobra"
)

// inventoryExecutable is what Ansible starts, and how the link to it is called.
const inventoryExecutable = "exocomp-inventory"

// layout is a directory from which Ansible reads an inventory of exocomp: the
// links, the nearest to the executable first, and an ansible.cfg. Everything in it
// may be laid again.
type layout struct {
	Dir       string    `json:"dir"`
	Inventory string    `json:"inventory,omitempty"` // empty: all of them
	Links     []symlink `json:"links"`
	Config    string    `json:"config"`
	Changed   []string  `json:"changed"` // the paths that were not so before
}

type symlink struct {
	Path   string `json:"path"`
	Target string `json:"target"`
}

func (a *app) inventoryLink() *cobra.Command {
	c := &cobra.Command{
		Use:   "link [tf:WORKSPACE] [DIR]",
		Short: "Make a directory from which Ansible reads an inventory, and fails closed",
		Long: `Lay into DIR (here, by default) what Ansible needs: the symbolic link
exocomp-inventory, and an ansible.cfg with which an inventory that cannot be read is
an error and every host key is verified against the pins. In that directory

  ansible-playbook -i exocomp-inventory site.yml

then plays against tf:WORKSPACE, or without one against all inventories at once, a
group per workspace. It may be called again; what is not exocomp's is left alone.`,
	}
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		workspace, dir, err := linkArguments(args)
		if err != nil {
			return err
		}
		return a.with(c.Context(), func(cl *rpc.Client) error {
			note, err := linkable(c.Context(), cl, workspace)
			if err != nil {
				return err
			}
			l, err := lay(workspace, dir)
			if err != nil {
				return err
			}
			if *asJSON {
				if err := a.printJSON(l); err != nil {
					return err
				}
			}
			a.sayLinked(l, note)
			return nil
		})
	}
	return c
}

// linkArguments reads `[tf:WORKSPACE] [DIR]`.
func linkArguments(args []string) (workspace, dir string, err error) {
	dir = "."
	if len(args) > 0 {
		if w, named := orchestrator.WorkspaceOfInventory(args[0]); named {
			if err := orchestrator.ValidateWorkspaceName(w); err != nil {
				return "", "", err
			}
			workspace, args = w, args[1:]
		}
	}
	switch len(args) {
	case 0:
	case 1:
		dir = args[0]
	default:
		return "", "", orchestrator.Errorf(orchestrator.CodeInvalid, "%q is no inventory", args[0]).
			WithHint("an inventory is written tf:WORKSPACE; list them: exocomp inventory list")
	}
	if err := absolute(&dir); err != nil {
		return "", "", err
	}
	return workspace, dir, linkDirectory(dir, len(args) == 1 && !strings.Contains(args[0], "/"))
}

// linkDirectory refuses a directory that is not there, and one whose ansible.cfg
// Ansible would not read.
func linkDirectory(dir string, maybeWorkspace bool) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		hint := "make it: " + orchestrator.ShellCommand("mkdir", dir)
		if maybeWorkspace {
			hint += "; or, if a workspace is meant, write tf:" + filepath.Base(dir)
		}
		return orchestrator.Errorf(orchestrator.CodeInvalid, "there is no directory %s", dir).WithHint("%s", hint)
	case err != nil:
		return orchestrator.Errorf(orchestrator.CodeInvalid, "%s: %w", dir, err)
	case !info.IsDir():
		return orchestrator.Errorf(orchestrator.CodeInvalid, "%s is no directory", dir)
	case info.Mode().Perm()&0o002 != 0:
		return orchestrator.Errorf(orchestrator.CodeRefused, "everybody may write into %s: Ansible reads no ansible.cfg there, and would not fail closed", dir).
			WithHint("%s", orchestrator.ShellCommand("chmod", "o-w", dir))
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() && st.Uid != 0 {
		return orchestrator.Errorf(orchestrator.CodeRefused, "%s belongs to uid %d, who could exchange what Ansible executes there as you", dir, st.Uid).
			WithHint("link as that user, or into a directory of your own")
	}
	return nil
}

// linkable refuses a workspace that is not there; the note says what else keeps
// the inventory from being read.
func linkable(ctx context.Context, cl *rpc.Client, workspace string) (note string, err error) {
	if err := known(ctx, cl, workspace); err != nil {
		return "", err
	}
	all, err := cl.ListInventories(ctx)
	if err != nil {
		return "", err
	}
	if workspace == "" && len(all) > 0 || slices.ContainsFunc(all, func(i orchestrator.Inventory) bool { return i.Workspace == workspace }) {
		return "", nil
	}
	if workspace == "" {
		workspace = "WORKSPACE"
	}
	return "nothing has been captured yet, and until then Ansible fails; an apply captures it: exocomp workspace apply " + workspace, nil
}

// lay makes the layout, after it has seen that nothing stands in the way.
func lay(workspace, dir string) (layout, error) {
	executable, err := findInventoryExecutable()
	if err != nil {
		return layout{}, err
	}
	config, err := linkConfig()
	if err != nil {
		return layout{}, err
	}
	l := layout{Dir: dir, Config: filepath.Join(dir, "ansible.cfg"), Changed: []string{}}
	next := executable
	if workspace != "" {
		// The executable goes by the name of a link on the way to it.
		l.Inventory = orchestrator.InventoryName(workspace)
		l.Links = append(l.Links, symlink{filepath.Join(dir, l.Inventory), next})
		next = l.Inventory
	}
	l.Links = append(l.Links, symlink{filepath.Join(dir, inventoryExecutable), next})
	var m orchestrator.Mistakes
	missing := make([]bool, len(l.Links))
	for i, s := range l.Links {
		missing[i], err = s.missing()
		m.Add(err)
	}
	renew, err := configMissing(l.Config, config)
	m.Add(err)
	if err := m.Err(); err != nil { // no mistake in the command line
		f := orchestrator.FailureOf(err)
		return layout{}, &orchestrator.Error{Code: orchestrator.CodeRefused, Message: f.Message, Hint: f.Hint}
	}
	if renew {
		// First: without it, Ansible does not fail closed.
		if err := durable.WriteFile(l.Config, []byte(config), durable.SharedFile); err != nil {
			return layout{}, err
		}
		l.Changed = append(l.Changed, l.Config)
	}
	for i, s := range l.Links {
		if !missing[i] {
			continue
		}
		if err := durable.Symlink(s.Target, s.Path); err != nil {
			return layout{}, err
		}
		l.Changed = append(l.Changed, s.Path)
	}
	return l, nil
}

// missing says whether the link has to be laid. What is there and is no link to
// the executable is not exocomp's to replace.
func (s symlink) missing() (bool, error) {
	_, err := os.Lstat(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	target, linkErr := os.Readlink(s.Path)
	switch {
	case linkErr == nil && target == s.Target:
		return false, nil
	case linkErr == nil && (filepath.Base(target) == inventoryExecutable || strings.HasPrefix(target, orchestrator.InventoryPrefix)):
		return true, nil
	default:
		return false, orchestrator.Errorf(orchestrator.CodeRefused, "%s is there and is no link of exocomp's", s.Path).
			WithHint("move it away, or link into another directory")
	}
}

// findInventoryExecutable returns the path of exocomp-inventory: beside this
// executable, else on PATH.
func findInventoryExecutable() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find exocomp-inventory: %w", err)
	}
	beside := filepath.Join(filepath.Dir(self), inventoryExecutable)
	if found, err := exec.LookPath(beside); err == nil {
		return found, nil
	}
	found, err := exec.LookPath(inventoryExecutable)
	if err == nil {
		found, err = filepath.Abs(found)
	}
	if err != nil {
		return "", orchestrator.Errorf(orchestrator.CodeRefused, "there is no %s, neither at %s nor on PATH", inventoryExecutable, beside).
			WithHint("install it beside exocomp")
	}
	return found, nil
}

// sayLinked tells people what they have now, and what would keep it from working.
func (a *app) sayLinked(l layout, note string) {
	what := l.Inventory
	if what == "" {
		what = "all inventories"
	}
	if len(l.Changed) == 0 {
		a.say("%s is linked already in %s", what, l.Dir)
	} else {
		a.say("linked %s in %s", what, l.Dir)
	}
	a.tell(note)
	if a.getenv("ANSIBLE_CONFIG") != "" {
		a.say("ANSIBLE_CONFIG is set, and Ansible reads that file instead of the one here: unset it")
	}
	if a.socket != "" {
		a.say("Ansible has to be told of the socket too: export %s", orchestrator.ShellCommand(rpc.SocketEnv+"="+a.socket))
	}
	if a.token != "" {
		a.say("and of the token: export %s", orchestrator.ShellCommand(rpc.TokenFileEnv+"="+a.token))
	}
	a.say("next: cd %s && ansible-playbook -i %s PLAYBOOK", orchestrator.ShellQuote(l.Dir), inventoryExecutable)
}
