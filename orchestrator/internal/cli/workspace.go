package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/spf13/cobra"
)

func (a *app) workspaceCommand() *cobra.Command {
	return group("workspace", "OpenTofu root modules that the daemon may apply",
		a.workspaceAdd(), a.workspaceList(), a.workspaceShow(), a.workspaceApply(),
		a.workspaceRefresh(), a.workspaceUnlock(), a.workspaceRemove())
}

func (a *app) workspaceAdd() *cobra.Command {
	var given orchestrator.Workspace
	var approval string
	c := &cobra.Command{
		Use:   "add NAME DIR",
		Short: "Register a root module; adding it again changes its settings",
		Long: `Register the OpenTofu root module in DIR under NAME. Its hosts become the standing
inventory tf:NAME. The daemon checks, as its own user, that it can read the
configuration and write the state. Adding it again changes what is given then and
keeps the rest; a flag that is given empty (--var-file '') clears its setting.`,
		Example: "  exocomp workspace add edge ./infra --var-file prod.tfvars",
	}
	f := c.Flags()
	f.StringVar(&given.TofuWorkspace, "tofu-workspace", "", "`name` of the module's own workspace (default: the default one)")
	f.StringArrayVar(&given.VarFiles, "var-file", nil, "variables `file`; may be repeated")
	f.StringArrayVar(&given.BackendConfig, "backend-config", nil, "backend configuration, a `file` or key=value; may be repeated")
	f.StringVar(&given.CLIConfig, "cli-config", "", "OpenTofu CLI configuration `file`")
	f.StringVar(&approval, "approval", string(orchestrator.ApprovalDestructive), "`policy` that says which plans wait for a person: never, destructive or always")
	f.BoolVar(&given.Watch, "watch", false, "apply it when its configuration changes; a plan that destroys something is never applied for that")
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		given.Name, given.Dir, given.Approval = args[0], args[1], orchestrator.ApprovalPolicy(approval)
		if err := absolutePaths(&given); err != nil {
			return err
		}
		if err := given.Validate(); err != nil {
			return err
		}
		return a.with(c.Context(), func(cl *rpc.Client) error {
			w, err := cl.GetWorkspace(c.Context(), given.Name)
			switch {
			case errors.Is(err, orchestrator.ErrNotFound):
				w = given
			case err != nil:
				return err
			default:
				w = changed(w, given, c.Flags().Changed)
			}
			added, err := cl.AddWorkspace(c.Context(), w)
			if err != nil {
				return err
			}
			if *asJSON {
				if err := a.printJSON(added); err != nil {
					return err
				}
			}
			a.say("workspace %s is %s", added.Name, added.Dir)
			if added.Watch {
				a.say("changes of its configuration are applied from now on; as it is now: %s",
					orchestrator.ShellCommand("exocomp", "workspace", "apply", added.Name))
			}
			a.say("next: exocomp provision run %s PLAYBOOK --wait", added.Name)
			return nil
		})
	}
	return c
}

// known refuses a filter by a workspace that there is not, of which a list that
// came out empty would say nothing. A reader, who may not ask, gets the list.
func known(ctx context.Context, cl *rpc.Client, workspace string) error {
	if workspace == "" || cl.Role() != rpc.RoleOperator {
		return nil
	}
	_, err := cl.GetWorkspace(ctx, workspace)
	return err
}

// changed returns w with what a person has given for it now.
func changed(w, given orchestrator.Workspace, has func(flag string) bool) orchestrator.Workspace {
	w.Dir = given.Dir
	if has("tofu-workspace") {
		w.TofuWorkspace = given.TofuWorkspace
	}
	if has("var-file") {
		w.VarFiles = given.VarFiles
	}
	if has("backend-config") {
		w.BackendConfig = given.BackendConfig
	}
	if has("cli-config") {
		w.CLIConfig = given.CLIConfig
	}
	if has("approval") {
		w.Approval = given.Approval
	}
	if has("watch") {
		w.Watch = given.Watch
	}
	return w
}

// absolutePaths makes the paths of w absolute and drops empty ones from its
// lists.
func absolutePaths(w *orchestrator.Workspace) error {
	empty := func(s string) bool { return s == "" }
	w.VarFiles = slices.DeleteFunc(w.VarFiles, empty)
	w.BackendConfig = slices.DeleteFunc(w.BackendConfig, empty)
	paths := []*string{&w.Dir, &w.CLIConfig}
	for i := range w.VarFiles {
		paths = append(paths, &w.VarFiles[i])
	}
	for i, b := range w.BackendConfig {
		if !strings.Contains(b, "=") {
			paths = append(paths, &w.BackendConfig[i])
		}
	}
	for _, p := range paths {
		if err := absolute(p); err != nil {
			return err
		}
	}
	return nil
}

// absolute makes a path that was given absolute; an empty one stays empty.
func absolute(path *string) error {
	if *path == "" {
		return nil
	}
	abs, err := filepath.Abs(*path)
	if err != nil {
		return orchestrator.Errorf(orchestrator.CodeInvalid, "make %q absolute: %w", *path, err)
	}
	*path = abs
	return nil
}

func (a *app) workspaceList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List the workspaces"}
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return a.with(c.Context(), func(cl *rpc.Client) error {
			all, err := cl.ListWorkspaces(c.Context())
			if err != nil {
				return err
			}
			if *asJSON {
				return a.printJSON(list(all))
			}
			rows := make([][]string, 0, len(all))
			for _, w := range all {
				var notes []string
				if w.Watch {
					notes = append(notes, "watched")
				}
				if len(w.Lost) > 0 {
					notes = append(notes, fmt.Sprintf("%d create(s) may be lost", len(w.Lost)))
				}
				note := strings.Join(notes, ", ")
				if w.HandedOver() {
					rows = append(rows, []string{w.Name, orDash(""), handedOver, note})
					continue
				}
				rows = append(rows, []string{w.Name, string(w.Approval), printable(w.Dir), note})
			}
			return a.table([]string{"NAME", "APPROVAL", "DIRECTORY", ""}, rows, "no workspaces; add one: exocomp workspace add NAME DIR")
		})
	}
	return c
}

func (a *app) workspaceShow() *cobra.Command {
	c := &cobra.Command{Use: "show NAME", Short: "Show a workspace's settings"}
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.with(c.Context(), func(cl *rpc.Client) error {
			w, err := cl.GetWorkspace(c.Context(), args[0])
			if err != nil {
				return err
			}
			if *asJSON {
				return a.printJSON(w)
			}
			return a.printWorkspace(w)
		})
	}
	return c
}

// handedOver stands where a workspace without a root module has no directory.
const handedOver = "(its hosts are handed over by an exocomp_provision)"

// watched says whether a change of the configuration is applied by itself.
func watched(w orchestrator.Workspace) string {
	if w.Watch {
		return "yes, applied when its configuration changes"
	}
	return "no"
}

func (a *app) printWorkspace(w orchestrator.Workspace) error {
	if w.HandedOver() {
		return a.table([]string{"workspace", w.Name}, [][]string{
			{"directory", handedOver},
			{"inventory", orchestrator.InventoryName(w.Name)},
			{"added", instant(w.CreatedAt)},
		}, "")
	}
	rows := [][]string{
		{"directory", printable(w.Dir)},
		{"inventory", orchestrator.InventoryName(w.Name)},
		{"tofu workspace", orDash(w.TofuWorkspace)},
		{"var files", orDash(printable(strings.Join(w.VarFiles, " ")))},
		{"backend config", orDash(printable(strings.Join(w.BackendConfig, " ")))},
		{"cli config", orDash(printable(w.CLIConfig))},
		{"approval", string(w.Approval)},
		{"watched", watched(w)},
		{"added", instant(w.CreatedAt)},
	}
	for _, l := range w.Lost {
		rows = append(rows, []string{"may be lost", printable(w.ImportCommand(l))})
	}
	return a.table([]string{"workspace", w.Name}, rows, "")
}

func (a *app) workspaceApply() *cobra.Command {
	var acceptLost bool
	c := &cobra.Command{
		Use:   "apply NAME",
		Short: "Apply the workspace and refresh its inventory, without any play",
	}
	c.Flags().BoolVar(&acceptLost, "accept-lost", false, "go on although an interrupted apply may have created what the state lacks")
	wait := waitFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.submitJob(c.Context(), wait, func(ctx context.Context, cl *rpc.Client) (orchestrator.Job, error) {
			return cl.ApplyWorkspace(ctx, "", args[0], acceptLost)
		})
	}
	return c
}

func (a *app) workspaceRefresh() *cobra.Command {
	c := &cobra.Command{
		Use:   "refresh NAME",
		Short: "Read the outputs again and publish the inventory, applying nothing",
	}
	wait := waitFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.submitJob(c.Context(), wait, func(ctx context.Context, cl *rpc.Client) (orchestrator.Job, error) {
			return cl.RefreshWorkspace(ctx, "", args[0])
		})
	}
	return c
}

func (a *app) workspaceUnlock() *cobra.Command {
	c := &cobra.Command{
		Use:   "unlock NAME LOCK_ID",
		Short: "Break a state lock that nobody holds any more (tofu force-unlock)",
	}
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.with(c.Context(), func(cl *rpc.Client) error {
			if err := cl.UnlockWorkspace(c.Context(), args[0], args[1]); err != nil {
				return err
			}
			if *asJSON {
				w, err := cl.GetWorkspace(c.Context(), args[0])
				if err != nil {
					return err
				}
				if err := a.printJSON(w); err != nil {
					return err
				}
			}
			a.say("lock %s of workspace %s is broken", args[1], args[0])
			return nil
		})
	}
	return c
}

func (a *app) workspaceRemove() *cobra.Command {
	var acceptLost bool
	c := &cobra.Command{
		Use:   "remove NAME",
		Short: "Forget a workspace and its inventory; its machines and state stay as they are",
	}
	c.Flags().BoolVar(&acceptLost, "accept-lost", false, "forget it although an interrupted apply may have created what the state lacks")
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.with(c.Context(), func(cl *rpc.Client) error {
			w, err := cl.GetWorkspace(c.Context(), args[0])
			if err != nil {
				return err
			}
			if err := cl.RemoveWorkspace(c.Context(), args[0], acceptLost); err != nil {
				return err
			}
			if *asJSON { // as it was
				if err := a.printJSON(w); err != nil {
					return err
				}
			}
			a.say("workspace %s is forgotten; nothing was destroyed", args[0])
			return nil
		})
	}
	return c
}
