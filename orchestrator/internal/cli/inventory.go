package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/spf13/cobra"
)

func (a *app) inventoryCommand() *cobra.Command {
	return group("inventory", "The standing inventories tf:<workspace>", a.inventoryList(), a.inventoryShow(), a.inventoryLink())
}

// inventoryListed is an inventory whose list of hosts is printed though it be
// empty.
type inventoryListed struct {
	orchestrator.Inventory
	Hosts []string `json:"hosts"`
}

func (a *app) inventoryList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List the inventories"}
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return a.with(c.Context(), func(cl *rpc.Client) error {
			all, err := cl.ListInventories(c.Context())
			if err != nil {
				return err
			}
			if *asJSON {
				views := make([]inventoryListed, 0, len(all))
				for _, i := range all {
					views = append(views, inventoryListed{i, list(i.Hosts)})
				}
				return a.printJSON(views)
			}
			rows := make([][]string, 0, len(all))
			for _, i := range all {
				rows = append(rows, []string{i.Name(), strconv.Itoa(len(i.Hosts)), instant(i.UpdatedAt), printable(i.Path)})
			}
			return a.table([]string{"INVENTORY", "HOSTS", "CAPTURED", "FILE"}, rows, "no inventories; an apply makes one: exocomp workspace apply WORKSPACE")
		})
	}
	return c
}

func (a *app) inventoryShow() *cobra.Command {
	var content bool
	c := &cobra.Command{
		Use:   "show WORKSPACE|tf:WORKSPACE",
		Short: "Show an inventory's hosts, their pins and admission",
	}
	asJSON := jsonFlag(c)
	c.Flags().BoolVar(&content, "content", false, "print the inventory itself, as Ansible reads it")
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.with(c.Context(), func(cl *rpc.Client) error {
			v, err := cl.GetInventory(c.Context(), args[0])
			if err != nil {
				return err
			}
			switch {
			case content:
				_, err := a.Out.Write(v.Inventory.Content)
				return err
			case *asJSON:
				v.Inventory.Content = nil // --content prints it
				v.Hosts = list(v.Hosts)
				return a.printJSON(v)
			}
			return a.printInventory(v)
		})
	}
	return c
}

func (a *app) printInventory(v rpc.InventoryView) error {
	a.say("%s names %d host(s), captured %s from %d output(s)", v.Inventory.Name(), len(v.Hosts), instant(v.Inventory.UpdatedAt), v.Inventory.Captured)
	a.say("file %s %s", printable(v.Inventory.Path), published(v.Published, v.Inventory.Workspace))
	a.say("%s", printable(admitting(v.Admission)))
	rows := make([][]string, 0, len(v.Hosts))
	for _, h := range v.Hosts {
		address := h.Address + ":" + strconv.Itoa(h.Port)
		if strings.Contains(h.Address, ":") {
			address = "[" + h.Address + "]:" + strconv.Itoa(h.Port)
		}
		admitted := instant(h.AdmittedAt)
		if h.Connection == "local" {
			address, admitted = "local", "not needed"
		}
		rows = append(rows, []string{h.Name, address, orDash(h.User), strings.Join(h.Groups, ","), admitted, orDash(string(h.Login)), orDash(h.Fingerprint)})
	}
	return a.table([]string{"HOST", "ADDRESS", "USER", "GROUPS", "ADMITTED", "LOGIN", "PIN"}, rows, "it names no hosts: declare an ansible_inventory or a hosts output")
}

// admitting says how a playbook run admits hosts.
func admitting(s rpc.AdmissionSettings) string {
	if s.PinOnly {
		return fmt.Sprintf("a playbook run pins new hosts and onboards none, as the handoff %s", s.Run)
	}
	with := "the seeded playbook"
	if s.OnboardPlaybook != nil {
		with = s.OnboardPlaybook.Path
	}
	text := fmt.Sprintf("a playbook run admits new hosts: waits for SSH up to %s, onboards them with %s", duration(s.SSHWait), with)
	for _, f := range s.SSHIdentities {
		text += ", logs in with " + f
	}
	if s.Run != "" {
		text += ", as " + string(s.Run)
	}
	return text
}

func published(s rpc.PublishedState, workspace string) string {
	switch s {
	case rpc.PublishedAgrees:
		return "agrees with the ledger"
	case rpc.PublishedMissing:
		return "is missing; publish it again: exocomp workspace refresh " + workspace
	default:
		return "differs from the ledger; publish it again: exocomp workspace refresh " + workspace
	}
}
